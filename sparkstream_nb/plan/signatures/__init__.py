"""The tables of `plan.functions`, one file a kind."""
