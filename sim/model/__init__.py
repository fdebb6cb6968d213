"""The nouns of a scenario with units and defaults, and randomness as a function of a seed."""
