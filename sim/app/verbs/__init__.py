"""The commands, for the terminal and for Python: each takes options and returns a printable result."""
