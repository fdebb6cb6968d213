"""What every verb does: values and a listener go in, everything is done and kept, and a result comes out, which shows itself.

The command and Python call it alike, so what lies in a folder is the same.  It knows every room that they need, and prints nothing.
"""
