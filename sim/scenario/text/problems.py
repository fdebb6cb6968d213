"""Mistakes in a scenario with their places, and the error that carries all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Self

from sim.foreign import Readable, one_line, printable

DocumentPath = tuple[str | int, ...]
"""Where in the document: keys and list positions from the top."""


MAX_GUESSES = 50


@dataclass(frozen=True, slots=True)
class Mark:
    """The place of a key: line and column from 1; line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""  # shown instead of the path in the document, when the value came from elsewhere (`flink:`)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake (or warning) with its place; `path` is dotted, e.g. ``job.enrich.parallelism``."""

    file: str
    line: int
    column: int
    path: str
    message: str
    is_note: bool = False  # it says what was done; a warning says what may be wrong

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return printable(": ".join(part for part in (place, self.path, self.message) if part))


class ScenarioError(Readable):
    """The mistakes of a scenario, one per line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__(self.problems)

    @classmethod
    def of(cls, file: object, message: str) -> Self:
        """One mistake, of a file as a whole."""
        return cls([Problem(str(file), 0, 0, "", message)])

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


@dataclass(slots=True)
class Reading:
    """The reading of one document: its marks, and the problems found so far."""

    file: str
    marks: dict[DocumentPath, Mark] = field(default_factory=dict)
    problems: dict[Problem, None] = field(default_factory=dict)  # an ordered set
    warnings: dict[Problem, None] = field(default_factory=dict)
    written_keys: dict[str, str] = field(default_factory=dict)  # of Flink and its operator that are not modelled, and their values

    def wrong(self, path: DocumentPath, message: str) -> None:
        self.problems[self._at(path, message)] = None

    def warn(self, path: DocumentPath, message: str) -> None:
        self.warnings[self._at(path, message)] = None

    def note(self, path: DocumentPath, message: str) -> None:
        self.warnings[replace(self._at(path, message), is_note=True)] = None

    def stop_if_wrong(self) -> None:
        if self.problems:
            raise ScenarioError(self.problems)

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """A guess, as long as there are few problems: guessing among many words takes its time."""
        return did_you_mean(word, known) if len(self.problems) < MAX_GUESSES else ""

    def _at(self, path: DocumentPath, message: str) -> Problem:
        """At the mark of the path, or of the nearest key above it."""
        mark = next((self.marks[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.marks), Mark(self.file))
        named = tuple(step if isinstance(step, int) else one_line(step) for step in path)
        return Problem(mark.file, mark.line, mark.column, mark.path or dotted(named), message)


def dotted(path: DocumentPath) -> str:
    """``("job", "a", "input", 0)`` -> ``job.a.input[0]``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'timeout'?)`` or nothing."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""
