"""Collect the values of an inferred scenario, with their origins, and questions about values that no source contains.

A missing value gets an assumption, so that the file runs.  It is marked UNKNOWN, with a question that the user of the
file should answer.
"""

# A draft is a plain document and a comment per path.  Every `infer_*` function writes into the same draft.
#
#   call                                       document                      comments["job.sink.service"]
#   ----                                       --------                      ----------------------------
#   put("service", "2.71 ms", "busy time /     job: sink: service: 2.71 ms   busy time / records in
#       records in", job="sink")
#   ask("service", "1 ms", "How long ...?",    job: sink: service: 1 ms      UNKNOWN: How long ...?
#       "1 ms.", job="sink")                                                 Assumed: 1 ms.
#   doubt("service", "How long ...?",          unchanged                     <origin>; UNKNOWN: How long ...?
#       "never.", job="sink")                                                Assumed: never.
#   drop("service", job="sink")                removed                       removed, also its questions
#
# `imported` hands document and comments to the writer, which puts each comment at its key:
#
#   job:
#     sink:
#       service: 2.71 ms  # busy time / records in
#
# `ckptsim advise` finds the mark UNKNOWN (sim/advice/questions.py), and reports which assumed values its
# recommendation depends on.
#
# The order of the `infer_*` functions (scenario.py) matters: later ones read and correct values that are already
# set.  Windows remove state (`drop`), contention for cores divides service times.  A registry of one function per
# quantity was rejected for this reason: it would contain the same functions and hide their order
# (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.jobs.source.recorded_job import ImportedScenario
from sim.model.text import one_line, printable
from sim.model.units import format_byte_rate, format_duration, format_size

MARK = "UNKNOWN"
MAX_LISTED_REQUESTS = 8  # unanswered requests listed in the head of the file
_COMMENT_WIDTH = 110  # characters per line


@dataclass(slots=True)
class Draft:
    """A scenario under construction, with its comments and questions."""

    document: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    inferred: int = 0
    unknown: list[str] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)
    scarce: list[str] = field(default_factory=list)
    core_load: float = 0.0  # runnable task threads / cores, of the busiest host

    def put(self, path: str, value: Any, source: str = "", *, job: str = "") -> None:
        """Set a value with its `source`, which becomes the comment.  `path` is dotted; `job` is the vertex it is below."""
        steps = (["job", job] if job else []) + path.split(".")
        place = self.document
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
        if source:
            self.inferred += 1
            self._comment(steps, source)

    def ask(self, path: str, value: Any, question: str, assumed: str, *, job: str = "") -> None:
        """Set an assumed value, with the question that would replace it and the reason for the assumption."""
        self.put(path, value, job=job)
        self.unknown.append(f"{f'{job}: ' if job else ''}{question}")
        self._comment((["job", job] if job else []) + path.split("."), f"{MARK}: {question} Assumed: {assumed}")

    def doubt(self, path: str, question: str, assumed: str, *, job: str) -> None:
        """Add a question to the origin of a value that is already set."""
        self.unknown.append(f"{job}: {question}")
        steps = ["job", job, *path.split(".")]
        self._comment(steps, f"{self.comments.get('.'.join(steps), '')}; {MARK}: {question} Assumed: {assumed}")

    def add_to(self, path: str, text: str, *, job: str) -> None:
        """Append `text` to the origin of a value."""
        steps = ["job", job, *path.split(".")]
        before = self.comments.get(".".join(steps), "")
        self._comment(steps, f"{before}; {text}" if before else text)

    def drop(self, path: str, *, job: str) -> None:
        """Remove a value that another one explains, with its comments and questions, if it is set."""
        steps = ["job", job, *path.split(".")]
        last = steps.pop()
        place = self.document
        for step in steps:
            place = place.get(step, {})
        if place.pop(last, None) is not None:
            full_path = ".".join([*steps, last])
            removed = {key for key in self.comments if key == full_path or key.startswith(f"{full_path}.")}
            comment = " ".join(" ".join(self.comments.pop(key).split()) for key in removed)
            self.unknown = [
                question
                for question in self.unknown
                if not question.startswith(f"{job}: ") or f"{MARK}: {question.removeprefix(f'{job}: ')}" not in comment
            ]

    def remark(self, text: str, *, job: str) -> None:
        """Append a line to the comment of a vertex."""
        before = self.comments.get(f"job.{job}", "")
        self.comments[f"job.{job}"] = "\n".join([*before.splitlines(), *_wrap_comment(text)])

    def ask_for_missing(self, missing: Mapping[str, str]) -> None:
        """Add a question for each failed request (path -> error message), whose part of the scenario is missing."""
        for path, why in list(missing.items())[:MAX_LISTED_REQUESTS]:
            question = f"What does {one_line(path, 120)} answer?"
            self.unknown.append(question)
            self.head.append(f"{MARK}: {question} The request failed: {one_line(why, 160)}. Assumed: the default.")
        if len(missing) > MAX_LISTED_REQUESTS:
            self.head.append(f"{len(missing) - MAX_LISTED_REQUESTS} more requests failed.")

    def imported(self, question: str) -> ImportedScenario:
        """Return the finished scenario; `question` is the first line of its file."""
        head = [*self.head, *(f"Not modelled: {what}." for what in self.not_modelled)]
        head += [f"A flow does not balance: {what}." for what in self.unbalanced]
        head += [f"Cores are scarce: {what}." for what in self.scarce]
        comments = {"": "\n".join(line for text in head for line in _wrap_comment(text)), **self.comments}
        texts = (tuple(self.unknown), tuple(self.unbalanced), tuple(self.scarce))
        return ImportedScenario(self.document, question, comments, tuple(self.not_modelled), self.inferred, *texts)

    def _comment(self, steps: list[str], text: str) -> None:
        self.comments[".".join(steps)] = "\n".join(_wrap_comment(text))


def duration_text(ns: float) -> str:
    """Format a duration with three digits, the precision of counters; at least 1 ns."""
    return format_duration(max(1, round(float(f"{ns:.3g}"))))


def rate_text(bytes_per_second: float) -> str:
    """Format a rate with three digits; at least 1 B/s."""
    return format_byte_rate(max(1, int(float(f"{bytes_per_second:.3g}"))))


def size_text(size_bytes: float) -> str:
    """Format a size with three digits."""
    return format_size(round(float(f"{size_bytes:.3g}")))


def _wrap_comment(text: str) -> list[str]:
    """Break a comment into lines.  Control characters of untrusted text are escaped, so that it cannot end the comment."""
    tokens = printable(" ".join(text.split())).split(" ")
    lines = [""]
    for token in tokens:
        if lines[-1] and len(lines[-1]) + len(token) + 1 > _COMMENT_WIDTH:
            lines.append("")
        lines[-1] += f" {token}" if lines[-1] else token
    return lines
