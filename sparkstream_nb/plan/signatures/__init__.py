"""The signature tables of `plan.functions`."""
