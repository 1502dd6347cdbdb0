"""Steps before a window, stream functions, and the select clause."""
