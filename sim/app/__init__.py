"""The front end: commands, the Python interface, report pages, example files."""
