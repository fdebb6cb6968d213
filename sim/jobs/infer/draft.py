"""Collect the values of an inferred scenario, with their origins, and questions about values that no source contains.

A missing value gets an assumption, so that the file runs.  It is marked UNKNOWN, with a question that the user of the
file should answer.
"""

# A draft is a plain document and a comment per path.  Every `infer_*` function writes into the same draft.
#
#   call, with sink = draft.vertex("sink")          document                      comments["job.sink.service"]
#   --------------------------------------          --------                      ----------------------------
#   sink.put("service", "2.71 ms", "busy time /     job: sink: service: 2.71 ms   busy time / records in
#       records in")
#   sink.ask("service", "1 ms", "How long ...?",    job: sink: service: 1 ms      UNKNOWN: How long ...?
#       "1 ms.")                                                                  Assumed: 1 ms.
#   sink.add_question("service", "How ...?",        unchanged                     <origin>; UNKNOWN: How ...?
#       "never.")                                                                 Assumed: never.
#   sink.drop("service")                            removed                       removed, also its questions
#
# `finish` hands document and comments to the writer, which puts each comment at its key:
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

from collections.abc import Iterable, Mapping
from typing import Any

from sim.jobs.source.recorded_job import ImportedScenario
from sim.model.text import capitalised, one_line, printable
from sim.model.units import MS, format_byte_rate, format_duration, format_size

MARK = "UNKNOWN"
MAX_LISTED_REQUESTS = 8  # unanswered requests listed in the head of the file
_COMMENT_WIDTH = 110  # characters per line


class Section:
    """The section of a vertex in a scenario under construction, or the whole document.

    Paths are dotted, and relative to the section.
    """

    def __init__(self, draft: Draft, name: str = "") -> None:
        self.draft, self.name = draft, name  # name of the vertex; "" for the whole document
        self.steps = ("job", name) if name else ()

    @property
    def values(self) -> dict[str, Any]:
        """The values that are set."""
        return self._mapping(())

    def put(self, path: str, value: Any, source: str = "") -> None:
        """Set a value with its `source`, which becomes the comment.  "assumed: ..." does not count as a source."""
        *steps, key = path.split(".")
        self._mapping(steps)[key] = value
        if source.startswith("assumed"):
            self.draft.assumed += 1
        elif source:
            self.draft.inferred += 1
        if source:
            self._comment(path, source)

    def ask(self, path: str, value: Any, question: str, assumed: str) -> None:
        """Set an assumed value, with the question that would replace it and the reason for the assumption."""
        self.put(path, value)
        self.draft.comments.pop(self._dotted(path), None)
        self.add_question(path, question, assumed)

    def add_question(self, path: str, question: str, assumed: str) -> None:
        """Add a question to the origin of a value that is already set."""
        self.append_comment(path, self._question_text(question, assumed))

    def remark_question(self, question: str, assumed: str) -> None:
        """Add a question about something that is not in the scenario."""
        self.remark(self._question_text(question, assumed))

    def _question_text(self, question: str, assumed: str) -> str:
        self.draft.unknown.append(f"{self.name}: {question}" if self.name else question)
        return f"{MARK}: {question} Assumed: {assumed}"

    def append_comment(self, path: str, text: str) -> None:
        """Append `text` to the origin of a value."""
        before = self.draft.comments.get(self._dotted(path))
        self._comment(path, f"{before}; {text}" if before else text)

    def drop(self, path: str) -> None:
        """Remove a value that another value replaces, with its comments and questions.  No effect if it is not set."""
        *steps, key = path.split(".")
        mapping = self.values
        for step in steps:
            mapping = mapping.get(step, {})
        if mapping.pop(key, None) is not None:
            comments, full_path, start = self.draft.comments, self._dotted(path), f"{self.name}: "
            removed = [name for name in comments if name == full_path or name.startswith(f"{full_path}.")]
            text = " ".join(" ".join(comments.pop(name).split()) for name in removed)
            self.draft.unknown = [
                question
                for question in self.draft.unknown
                if not question.startswith(start) or f"{MARK}: {question.removeprefix(start)}" not in text
            ]

    def remark(self, text: str) -> None:
        """Append a line to the comment of the section."""
        key = ".".join(self.steps)
        before = self.draft.comments.get(key, "")
        self.draft.comments[key] = "\n".join([*before.splitlines(), *_wrap_comment(text)])

    def _mapping(self, steps: Iterable[str]) -> dict[str, Any]:
        """Return the mapping at a path, which is created if it does not exist."""
        mapping = self.draft.document
        for step in (*self.steps, *steps):
            mapping = mapping.setdefault(step, {})
        return mapping

    def _dotted(self, path: str) -> str:
        return ".".join([*self.steps, path])

    def _comment(self, path: str, text: str) -> None:
        self.draft.comments[self._dotted(path)] = "\n".join(_wrap_comment(text))


class Draft(Section):
    """A scenario under construction, with its comments and questions."""

    def __init__(self) -> None:
        super().__init__(self)
        self.document: dict[str, Any] = {}
        self.comments: dict[str, str] = {}
        self.header_lines: list[str] = []  # lines of the comment at the head of the file
        self.inferred = 0  # number of values with an origin
        self.assumed = 0  # number of values that are usual in other jobs
        self.unknown: list[str] = []  # open questions
        self.not_modelled: list[str] = []  # features of the job that a scenario cannot express
        self.warnings: list[str] = []  # contradictions between record counters, and contention for cores, as phrases
        self.core_load = 0.0  # runnable task threads / cores, of the busiest host

    def vertex(self, name: str) -> Section:
        """Return the section of a vertex."""
        return Section(self, name)

    def remark(self, text: str) -> None:
        """Append a line to the comment at the head of the file."""
        self.header_lines.append(text)

    def ask_for_missing(self, missing: Mapping[str, str]) -> None:
        """Add a question for each failed request (path -> error message), whose part of the scenario is missing."""
        for path, error in list(missing.items())[:MAX_LISTED_REQUESTS]:
            question = f"What is the response to GET {one_line(path, 120)}?"
            self.remark_question(question, f"the defaults. The request failed: {one_line(error, 160)}.")
        if len(missing) > MAX_LISTED_REQUESTS:
            self.remark(f"{len(missing) - MAX_LISTED_REQUESTS} more requests failed.")

    def finish(self, title: str) -> ImportedScenario:
        """Return the finished scenario.  `title` is the first line of its file."""
        lines = [*self.header_lines, *(f"Not modelled: {feature}." for feature in self.not_modelled)]
        lines += [f"{capitalised(warning)}." for warning in self.warnings]
        return ImportedScenario(
            self.document,
            title,
            {"": "\n".join(line for text in lines for line in _wrap_comment(text)), **self.comments},
            not_modelled=tuple(self.not_modelled),
            inferred=self.inferred,
            assumed=self.assumed,
            unknown=tuple(self.unknown),
            warnings=tuple(self.warnings),
        )


def duration_3_digits(ns: float) -> str:
    """Format a duration with three digits, the precision of counters; at least 1 ns."""
    return format_duration(max(1, round(float(f"{ns:.3g}"))))


def format_whole_ms(ms: float) -> str:
    """Format a duration in whole milliseconds, the precision of Flink's statistics."""
    return format_duration(round(ms) * MS)


def rate_3_digits(bytes_per_second: float) -> str:
    """Format a rate with three digits; at least 1 B/s."""
    return format_byte_rate(max(1, int(float(f"{bytes_per_second:.3g}"))))


def size_3_digits(size_bytes: float) -> str:
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
