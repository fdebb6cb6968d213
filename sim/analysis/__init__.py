"""Result tables -> what a person wants to know: a row per strategy, a sentence, a picture.

The rooms `cells`, `comparison`, `sweep` and `advice` call it.  It reads tables only, and knows neither scenarios nor runs.
"""
