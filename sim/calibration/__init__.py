"""Recording -> scenario -> simulation, and the two held side by side."""
