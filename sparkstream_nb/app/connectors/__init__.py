"""Sources, sinks and stores of a deployment, made from its plan."""
