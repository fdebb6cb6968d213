"""The tables of a run -> a row per strategy, its costs, the content of storage, a verdict in a sentence, pictures.

The rooms `cells` and `comparison` call it, and the command `run`.  It knows no sweep and no varied setting.
"""
