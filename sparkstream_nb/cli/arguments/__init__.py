"""The options of each command, by groups of commands. Only what parsers need is imported here: help starts at once."""
