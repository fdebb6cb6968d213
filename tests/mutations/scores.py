"""What came of the samples: the numbers that are committed, changes nobody can notice, and the page of both.

`python -m tests.mutations.scores` writes the page anew.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutations.changes import ROOT, Mutant, head, text_of

__all__ = ["MOMENTS", "PAGE", "Score", "equivalents", "note", "page", "reasons", "stands", "survivors"]

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SURVIVORS = Path(__file__).with_name("survivors.toml")
NUMBERS = Path(__file__).with_name("scores.json")
PAGE = Path(__file__).with_name("SCORES.md")
MOMENTS = ("before", "between", "after")  # tests were written for what the first samples told; the last is another one
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
    return rows_of(EQUIVALENT, "equivalent")


def reasons() -> dict[Key, str]:
    """Why a change lives that somebody could notice."""
    return rows_of(SURVIVORS, "survivor")


def rows_of(path: Path, name: str) -> dict[Key, str]:
    rows = tomllib.loads(path.read_text()).get(name, [])
    return {(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def note(room: str, moment: str, score: Score, survivors: Sequence[Mutant]) -> None:
    """Keep an outcome and write the page anew."""
    numbers = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    rows = sorted({(mutant.file, mutant.line, mutant.before, mutant.after) for mutant in survivors})
    numbers.setdefault(room, {})[moment] = {"score": score, "survivors": rows}
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n")
    PAGE.write_text(page())


def survivors() -> dict[str, list[tuple[int, Key]]]:
    """By room: line and change of what lived in the last draw, is not known to be equivalent and can still be made."""
    numbers = json.loads(NUMBERS.read_text())
    known = equivalents()
    drawn = {room: moments["after"]["survivors"] for room, moments in numbers.items() if "after" in moments}
    found = {room: [(line, (file, *change)) for file, line, *change in rows] for room, rows in drawn.items()}
    return {room: [(line, key) for line, key in rows if key not in known and stands(key)] for room, rows in found.items()}


def stands(key: Key) -> bool:
    """Whether the text that is changed is still one of its file."""
    return key[1] in heads(key[0])


@cache
def heads(file: str) -> frozenset[str]:
    """Every statement of a file in one line, compound ones without what is below them."""
    if not (ROOT / file).exists():
        return frozenset()
    nodes = ast.walk(ast.parse(text_of(ROOT / file)))
    return frozenset(head(node) for node in nodes if isinstance(node, ast.stmt | ast.match_case))


def page() -> str:
    numbers = json.loads(NUMBERS.read_text())
    known = equivalents()
    lines = [
        "# Changes chosen by a tool and how many a test notices",
        "",
        "Written by `python -m tests.mutations.score --room ROOM --sample N --seed N --note after`.",
        "One operator, number, condition, returned value or statement is changed at a time, and the tests run that reach it.",
        "*Before* and *between* were drawn before tests were written for what they showed.",
        "*After* is another draw, so that no test was written for it.",
        "Equivalent changes are those of `equivalent.toml`.  A survivor may still fall to a test that was not asked:",
        "only those of its room are, and those of other folders that are recorded, the nearest first, for some seconds.",
        "A failure counts as noticed only if the same tests pass without the change.",
        "",
        "`make mutants SAMPLE=100 SEED=7` tries a draw of every room and writes nothing.",
        "Which test runs which line is recorded in `.mutants/`, where outcomes are kept too.",
        "Files of tests that are new or have changed are recorded again by themselves.",
        "Assertions, annotations, texts of messages and decorators are not changed.",
        "The kernel is judged interpreted, beside the reference.",
        "",
        "Why a tool of our own: mutmut 3.8 wraps every function, which neither the kernel's compiler nor the test of its text allows,",
        "and it changes nothing outside functions; cosmic-ray starts pytest anew for each change,",
        "which takes longer here than the tests that notice.",
        "",
        "| room | changes | draw | seed | drawn | equivalent | noticed | survivors | score |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row(room, moment, Score(*draws[moment]["score"])) for room, draws in numbers.items() for moment in MOMENTS if moment in draws),
    ]
    why = reasons()
    for room, rows in survivors().items():
        if rows:
            lines += ["", f"## {room}: survivors of the last draw", ""]
            lines += [f"* {description(key, line)}: {why.get(key, 'not looked into')}" for line, key in rows]
    counts = Counter(key[0].split("/")[1] for key in known)
    lines += ["", "## Equivalent changes", ""]
    lines += [f"{len(known)} are listed: " + ", ".join(f"{room} {counts[room]}" for room in sorted(counts)) + ".", ""]
    lines += [f"* {description(key)}: {reason}" for key, reason in sorted(known.items())]
    return "\n".join(lines) + "\n"


def row(room: str, moment: str, score: Score) -> str:
    real = score.drawn - score.equivalent
    share = f"{score.noticed / max(1, real):.1%}"
    cells = (room, score.possible, moment, score.seed, score.drawn, score.equivalent, score.noticed, real - score.noticed, share)
    return f"| {' | '.join(map(str, cells))} |"


def description(key: Sequence[str], line: int | None = None) -> str:
    """Where, and what becomes what, without what stays the same on both sides."""
    file, before, after = key
    begin = next((i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), min(len(before), len(after)))
    begin = max(0, begin - WIDTH // 2)
    place = file.removeprefix("sim/") + ("" if line is None else f":{line}")
    return f"`{place}`: `{cut(before, begin)}` -> `{cut(after, begin)}`"


def cut(text: str, begin: int) -> str:
    return ("..." if begin else "") + text[begin : begin + WIDTH] + ("..." if begin + WIDTH < len(text) else "")


if __name__ == "__main__":
    PAGE.write_text(page())
