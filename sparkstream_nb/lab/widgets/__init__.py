"""Interactive views. Each is also a result: its bundle holds a picture and a table for where widgets do not work."""
