"""Sources outside: what they have is entered into the inbox, with how far each is."""
