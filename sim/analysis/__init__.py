"""Result tables -> answers for people: a row per strategy, a sentence, a picture.

The rooms `cells`, `comparison`, `sweeps` and `advice` call it.  It reads tables only, and knows neither scenarios nor runs.
"""
