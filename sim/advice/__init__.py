"""Searches for settings that meet limits: candidates, trials by simulation, sensitivities, a patch to paste."""
