"""Sweeps: the sweep file, the rows of its cells, where they run, the answer to its question."""
