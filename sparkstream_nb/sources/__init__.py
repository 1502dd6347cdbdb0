"""Outside sources: their messages are entered into the inbox, with the position of each."""
