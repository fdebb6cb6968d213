"""The tables of one run -> a row per strategy, what it costs, what lies in storage, a verdict in a sentence, pictures.

The rooms `cells` and `comparison` call it, and the command `run`.  It knows no sweep and no setting that was varied.
"""
