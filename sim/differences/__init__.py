"""What `ckptsim diff` does: the inputs of two scenarios option by option, and how much of the change of an answer each accounts for.

Verbs call it.  It knows scenarios, their cells and the folders of results; it prints nothing and keeps nothing.
"""
