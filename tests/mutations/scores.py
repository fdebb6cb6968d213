"""What came of the samples: the numbers that are committed, changes nobody can notice, and the page of both."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutations.changes import Mutant

__all__ = ["MOMENTS", "NOT_DRAWN", "PAGE", "Score", "equivalents", "note", "page"]

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
NUMBERS = Path(__file__).with_name("scores.json")
PAGE = Path(__file__).with_name("SCORES.md")
MOMENTS = ("before", "after")  # tests were written for what the first sample told; the second is another one
NOT_DRAWN = {"sim/plane/kernel/jit.py": "it works when the kernel is compiled, and a kernel found in the cache is not compiled again"}
WIDTH = 150  # of a change on the page

Key = tuple[str, str, str]


class Score(NamedTuple):
    possible: int  # changes of the room
    seed: int
    drawn: int
    equivalent: int
    noticed: int

    def __str__(self) -> str:
        real = self.drawn - self.equivalent
        share = self.noticed / max(1, real)
        drawn = f"seed {self.seed}, {self.drawn} of {self.possible} changes, {self.equivalent} equivalent"
        return f"{drawn}, {self.noticed} of {real} noticed, {share:.1%}"


def equivalents() -> dict[Key, str]:
    """What nobody can notice, with the reason."""
    rows = tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def note(room: str, moment: str, score: Score, survivors: Sequence[Mutant]) -> None:
    """Keep an outcome and write the page anew."""
    numbers = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    rows = sorted({mutant.key for mutant in survivors})
    numbers.setdefault(room, {})[moment] = {"score": score, "survivors": rows}
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
    PAGE.write_text(page())


def page() -> str:
    numbers = json.loads(NUMBERS.read_text())
    known = equivalents()
    lines = [
        "# Changes chosen by a tool and how many a test notices",
        "",
        "Written by `python -m tests.mutations.score --room ROOM --sample N --seed N --note after`.",
        "One operator, number, condition, returned value or statement is changed at a time, and the tests run that reach it.",
        "*Before* was drawn before tests were written for what it showed; *after* is another draw, so that no test was written for it.",
        "Equivalent changes are those of `equivalent.toml`.  A survivor may still fall to a test that was not asked:",
        "only those of the rooms and of `laws` are, the nearest first, for some seconds.",
        "For some of the survivors below tests have been written since.",
        "",
        "`make mutants SAMPLE=100 SEED=7` tries a draw of every room and writes nothing.",
        "Which test runs which line is recorded once, in `.mutants/`, where outcomes are kept too.",
        "After tests were written, `python -m tests.mutations.touched protocol` records those of a folder again.",
        "Assertions, annotations, texts of messages and decorators are not changed.",
        "The kernel is judged interpreted, beside the reference.",
        *(f"Nothing is drawn from `{file}`: {reason}." for file, reason in NOT_DRAWN.items()),
        "",
        "Why a tool of our own: mutmut 3.8 wraps every function, which numba cannot compile and the test of the kernel's text refuses,",
        "and it changes nothing outside functions; cosmic-ray starts pytest anew for each change,",
        "which takes longer here than the tests that notice.",
        "",
        "| room | changes | before: drawn | noticed | after: drawn | equivalent | noticed | survivors |",
        "|---|---|---|---|---|---|---|---|",
        *(row(room, moments) for room, moments in numbers.items()),
    ]
    for room, moments in numbers.items():
        if survivors := [key for key in moments.get("after", {}).get("survivors", ()) if tuple(key) not in known]:
            lines += ["", f"## {room}: survivors of the second draw", ""]
            lines += [f"* {shown(key)}" for key in survivors]
    counts = Counter(key[0].split("/")[1] for key in known)
    lines += ["", "## Equivalent changes", ""]
    lines += [f"{len(known)} are listed: " + ", ".join(f"{room} {counts[room]}" for room in sorted(counts)) + ".", ""]
    lines += [f"* {shown(key)}: {reason}" for key, reason in sorted(known.items())]
    return "\n".join(lines) + "\n"


def row(room: str, moments: dict[str, Any]) -> str:
    cells: list[str] = []
    for moment in MOMENTS:
        if moment not in moments:
            cells += ["", ""] if moment == "before" else ["", "", "", ""]
            continue
        score = Score(*moments[moment]["score"])
        real = score.drawn - score.equivalent
        noticed = f"{score.noticed} ({score.noticed / max(1, real):.0%})"
        cells += [str(score.drawn)] if moment == "before" else [str(score.drawn), str(score.equivalent)]
        cells += [noticed] if moment == "before" else [noticed, str(real - score.noticed)]
    possible = next(Score(*moments[moment]["score"]).possible for moment in reversed(MOMENTS) if moment in moments)
    return f"| {room} | {possible} | " + " | ".join(cells) + " |"


def shown(key: Sequence[str]) -> str:
    """Where, and what becomes what, without what stays the same on both sides."""
    file, before, after = key
    begin = next((i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), min(len(before), len(after)))
    begin = max(0, begin - WIDTH // 2)
    return f"`{file.removeprefix('sim/')}`: `{cut(before, begin)}` -> `{cut(after, begin)}`"


def cut(text: str, begin: int) -> str:
    return ("..." if begin else "") + text[begin : begin + WIDTH] + ("..." if begin + WIDTH < len(text) else "")
