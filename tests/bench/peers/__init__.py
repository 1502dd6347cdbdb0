"""The same queries on other engines, measured in turn with ours, and their outputs compared."""
