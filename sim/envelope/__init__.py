"""The validity envelope: on which values of which features predictions were held to recordings, and what lies outside.

The commands `run`, `sweep` and `advise` call it, `make envelope` writes its file.  It knows scenarios; only the writer knows recordings.
"""
