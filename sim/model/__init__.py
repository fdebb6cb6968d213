"""The scenario model with units and defaults, and random numbers as a function of a seed."""
