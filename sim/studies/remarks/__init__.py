"""Sentences on single runs, which a comparison adds to its verdict."""
