"""A scenario in the making: values with their origins, and questions about values that no source tells.

A missing value gets an assumption, so that the file runs.  It is marked UNKNOWN, with the question that its author
should answer.
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
# `inference` hands document and comments to the writer, which puts each comment at its key:
#
#   job:
#     sink:
#       service: 2.71 ms  # busy time / records in
#
# A gap always gets an assumption, so that the file runs at once.  It is marked UNKNOWN; `ckptsim advise`
# finds the mark (sim/advice/questions.py), and says which assumed values its answer rests on.
#
# The order of the `infer_*` functions (scenario.py) matters: later ones read and correct what is set already.
# Windows take state back (`drop`), shared cores divide service times.  One record per inferred quantity was
# rejected for this reason: it would hold the same functions and hide their order
# (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.model.text import one_line, printable
from sim.model.units import format_byte_rate, format_duration, format_size

MARK = "UNKNOWN"
MAX_LISTED = 8  # unanswered requests that the head lists
_WIDTH = 110  # of a line of comment


@dataclass(frozen=True, slots=True)
class Inference:
    """An inferred scenario for `sim.model.schema.writer.write`, with its comments and open questions."""

    document: dict[str, Any]
    question: str
    comments: dict[str, str]  # dotted path -> comment; the empty path is the head
    inferred: int  # number of values with an origin
    unknown: tuple[str, ...]  # questions
    not_modelled: tuple[str, ...]  # features of the job that a scenario cannot say
    unbalanced: tuple[str, ...] = ()  # counters of two vertices that contradict each other
    scarce: tuple[str, ...] = ()  # threads that want more cores than there are


@dataclass(slots=True)
class Draft:
    """A scenario in the making, with its comments and questions."""

    document: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    inferred: int = 0
    unknown: list[str] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)
    scarce: list[str] = field(default_factory=list)
    core_load: float = 0.0  # threads of tasks that want a core of the busiest host, over its cores

    def put(self, path: str, value: Any, source: str = "", *, job: str = "") -> None:
        """Set a value that a source tells.  `path` is dotted, below the vertex `job` if there is one."""
        steps = (["job", job] if job else []) + path.split(".")
        place = self.document
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
        if source:
            self.inferred += 1
            self._remark(steps, source)

    def ask(self, path: str, value: Any, question: str, assumed: str, *, job: str = "") -> None:
        """Set an assumed value, with the question that would replace it and the reason for the assumption."""
        self.put(path, value, job=job)
        self.unknown.append(f"{f'{job}: ' if job else ''}{question}")
        self._remark((["job", job] if job else []) + path.split("."), f"{MARK}: {question} Assumed: {assumed}")

    def doubt(self, path: str, question: str, assumed: str, *, job: str) -> None:
        """Add a question to a value that is set."""
        self.unknown.append(f"{job}: {question}")
        steps = ["job", job, *path.split(".")]
        self._remark(steps, f"{self.comments.get('.'.join(steps), '')}; {MARK}: {question} Assumed: {assumed}")

    def add_to(self, path: str, text: str, *, job: str) -> None:
        """Add a word to the origin of a value."""
        steps = ["job", job, *path.split(".")]
        before = self.comments.get(".".join(steps), "")
        self._remark(steps, f"{before}; {text}" if before else text)

    def drop(self, path: str, *, job: str) -> None:
        """Take a value back that another one explains, with its comments and questions; nothing if it was not set."""
        steps = ["job", job, *path.split(".")]
        last = steps.pop()
        place = self.document
        for step in steps:
            place = place.get(step, {})
        if place.pop(last, None) is not None:
            full_path = ".".join([*steps, last])
            gone = {key for key in self.comments if key == full_path or key.startswith(f"{full_path}.")}
            comment = " ".join(" ".join(self.comments.pop(key).split()) for key in gone)
            self.unknown = [question for question in self.unknown if not _stands_in(comment, job, question)]

    def remark(self, text: str, *, job: str) -> None:
        """Add a remark about a vertex as a whole."""
        before = self.comments.get(f"job.{job}", "")
        self.comments[f"job.{job}"] = "\n".join([*before.splitlines(), *_lines(text)])

    def ask_for_missing(self, missing: Mapping[str, str]) -> None:
        """Add a question for each request without an answer: its part of the scenario is missing."""
        for path, why in list(missing.items())[:MAX_LISTED]:
            question = f"What does {one_line(path, 120)} answer?"
            self.unknown.append(question)
            self.head.append(f"{MARK}: {question} Nothing came: {one_line(why, 160)}. Assumed: the default.")
        if len(missing) > MAX_LISTED:
            self.head.append(f"Nor did {len(missing) - MAX_LISTED} more questions have an answer.")

    def inference(self, question: str) -> Inference:
        head = [*self.head, *(f"Not modelled: {what}." for what in self.not_modelled)]
        head += [f"A flow does not balance: {what}." for what in self.unbalanced]
        head += [f"Cores are scarce: {what}." for what in self.scarce]
        comments = {"": "\n".join(line for text in head for line in _lines(text)), **self.comments}
        lists = (tuple(self.unknown), tuple(self.not_modelled), tuple(self.unbalanced), tuple(self.scarce))
        return Inference(self.document, question, comments, self.inferred, *lists)

    def _remark(self, steps: list[str], text: str) -> None:
        self.comments[".".join(steps)] = "\n".join(_lines(text))


def duration_text(ns: float) -> str:
    """Three digits of it: counters are no more exact.  At least a nanosecond."""
    return format_duration(max(1, round(float(f"{ns:.3g}"))))


def rate_text(bytes_per_second: float) -> str:
    """Three digits of it, at least a byte per second."""
    return format_byte_rate(max(1, int(float(f"{bytes_per_second:.3g}"))))


def size_text(size_bytes: float) -> str:
    """Three digits of it."""
    return format_size(round(float(f"{size_bytes:.3g}")))


def _stands_in(comment: str, job: str, question: str) -> bool:
    """Whether these comments of a vertex ask a question."""
    return question.startswith(f"{job}: ") and f"{MARK}: {question.removeprefix(f'{job}: ')}" in comment


def _lines(text: str) -> list[str]:
    """Lines of a comment, broken between words.  Control characters of foreign text cannot leave the comment."""
    tokens = printable(" ".join(text.split())).split(" ")
    lines = [""]
    for token in tokens:
        if lines[-1] and len(lines[-1]) + len(token) + 1 > _WIDTH:
            lines.append("")
        lines[-1] += f" {token}" if lines[-1] else token
    return lines
