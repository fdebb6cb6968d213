"""Searches for settings that meet limits: candidates, trials by simulation, a patch to paste."""
