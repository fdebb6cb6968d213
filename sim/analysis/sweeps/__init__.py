"""The rows of many runs -> answers: means with their confidence, the best setting, which setting matters, a picture.

The rooms `sweep` and `advice` call it.  It knows settings and results by the names of their columns, nothing else.
"""
