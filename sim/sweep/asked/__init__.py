"""Sweep files: what they ask for, and how their question is answered."""
