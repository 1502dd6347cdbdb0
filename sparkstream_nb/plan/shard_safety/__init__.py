"""Rules that say whether the nodes of an app together give the right answer."""
