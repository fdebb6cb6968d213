"""What `ckptsim timeline` does: a run as Trace Event JSON, which Perfetto and other viewers open.

The command `timeline` and the API call it.  It knows the records of a run and the format, and decides nothing.
"""
