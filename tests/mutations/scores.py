"""How a draw came out, and the changes that nobody can notice."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Score(NamedTuple):
    possible: int  # changes of the package
    seed: int
    drawn: int
    equivalent: int
    noticed: int

    def __str__(self):
        real = self.drawn - self.equivalent
        share = self.noticed / max(1, real)
        drawn = f"seed {self.seed}, {self.drawn} of {self.possible} changes, {self.equivalent} equivalent"
        return f"{drawn}, {self.noticed} of {real} noticed, {share:.1%}"


def equivalents():
    """File, text before and after, with the reason why nobody can notice; a row whose text is gone says nothing."""
    rows = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}
