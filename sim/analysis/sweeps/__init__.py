"""The rows of many runs -> answers: means with confidence, the best setting, the effects of settings, a picture.

The rooms `sweep` and `advice` call it.  It knows settings and results by the names of their columns, nothing else.
"""
