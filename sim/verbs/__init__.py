"""What `run`, `sweep`, `advise` and `import` do: values and a listener go in, everything is done and kept, and a result comes out.

The command and Python call it alike, so what lies in a folder is the same.  It knows every room that they need, and prints nothing.
"""
