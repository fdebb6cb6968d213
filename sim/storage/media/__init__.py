"""The kinds of storage, a module each."""
