"""A scenario in the making: every value with a word on where it comes from, and a list of what nobody could tell.

What is missing is still given a value, so that the file runs as it is; it is marked UNKNOWN, with the question its author should answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.foreign import printable, shown

__all__ = ["MARK", "Draft", "Inference"]

MARK = "UNKNOWN"
SHOWN = 8  # questions without an answer that the head names
_WIDTH = 110  # of a comment's line


@dataclass(frozen=True, slots=True)
class Inference:
    """What `sim.scenario.write` makes a file of, and what people are told about it."""

    document: dict[str, Any]
    question: str
    comments: dict[str, str]  # by dotted path; the empty one is the head
    inferred: int  # values with a source
    unknown: tuple[str, ...]  # questions
    not_modelled: tuple[str, ...]  # phrases


@dataclass(slots=True)
class Draft:
    document: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    inferred: int = 0
    unknown: list[str] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)

    def put(self, path: str, value: Any, source: str = "", *, job: str = "") -> None:
        """A value that the source tells; `path` is dotted, below the vertex `job` if there is one."""
        steps = (["job", job] if job else []) + path.split(".")
        place = self.document
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
        if source:
            self.inferred += 1
            self._remark(steps, source)

    def ask(self, path: str, value: Any, question: str, assumed: str, *, job: str = "") -> None:
        """A value nobody knows: the question, and what is assumed until it is answered, and why."""
        self.put(path, value, job=job)
        self.unknown.append(f"{f'{job}: ' if job else ''}{question}")
        self._remark((["job", job] if job else []) + path.split("."), f"{MARK}: {question} Assumed: {assumed}")

    def remark(self, text: str, *, job: str) -> None:
        """About a vertex as a whole, beside what was said before."""
        before = self.comments.get(f"job.{job}", "")
        self.comments[f"job.{job}"] = "\n".join([*before.splitlines(), *_lines(text)])

    def miss(self, missing: Mapping[str, str]) -> None:
        """What was asked for and not answered, and why: whatever it would have told is not in the scenario."""
        for path, why in list(missing.items())[:SHOWN]:
            question = f"What does {shown(path, 120)} answer?"
            self.unknown.append(question)
            self.head.append(f"{MARK}: {question} Nothing came: {shown(why, 160)}. Assumed: what holds where nobody asks.")
        if len(missing) > SHOWN:
            self.head.append(f"Nor did {len(missing) - SHOWN} more questions have an answer.")

    def finished(self, question: str) -> Inference:
        head = [*self.head, *(f"Not modelled: {what}." for what in self.not_modelled)]
        comments = {"": "\n".join(line for text in head for line in _lines(text)), **self.comments}
        return Inference(self.document, question, comments, self.inferred, tuple(self.unknown), tuple(self.not_modelled))

    def _remark(self, steps: list[str], text: str) -> None:
        self.comments[".".join(steps)] = "\n".join(_lines(text))


def _lines(text: str) -> list[str]:
    """Broken between words; whatever comes from outside stays inside the comment, and is no longer than a reader likes."""
    words = printable(" ".join(text.split())).split(" ")
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > _WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
