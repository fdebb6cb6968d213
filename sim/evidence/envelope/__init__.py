"""The validity envelope: the values of features for which predictions were compared with recordings.  All else lies outside of it.

The commands `run`, `sweep` and `advise` call it, `make envelope` writes its file.  It knows scenarios; only the writer knows recordings.
"""
