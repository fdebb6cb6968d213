"""The kinds of storage, one module each."""
