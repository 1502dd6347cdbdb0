"""Columns, rows, strings, clocks and timers: the data that operators work on."""
