"""The front end: commands, the Python interface, pages of reports, first files."""
