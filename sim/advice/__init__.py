"""Searches for settings that keep limits: candidates, trials by simulation, sensitivities, a patch to paste."""
