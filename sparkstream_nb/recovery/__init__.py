"""Events that crash a node: how they are found and set aside."""
