"""Result tables -> what a person wants to know: a row per strategy, a sentence, a picture.  Reads tables only."""
