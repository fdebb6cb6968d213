"""The rows of many runs -> answers: means with confidence, which setting is best, the effects of settings, a picture.

The rooms `sweeps` and `advice` call it, and make sentences of what it finds.
It knows settings and results by the names of their columns, nothing else.
"""
