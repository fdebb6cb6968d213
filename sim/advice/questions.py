"""Questions to the user: inputs that the scenario marks UNKNOWN, and further inputs that trials assume.

The search does not vary these inputs.  Each question names the value that is assumed until it is answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.model.schema.study import key_of, path_of
from sim.model.schema.text import DocumentPath, Reading, compose, value_at
from sim.results.formats import bytes_text, ms_text

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.trials import Bench

_MARK = re.compile(r"(?:^|\s)#\s*(?:.*; )?UNKNOWN:\s*(.*)$")
_SETTINGS = ("interval", "timeout", "barriers", "min-pause", "max-concurrent")
"""Keys of `checkpoint` that are part of a setting.  The search chooses them, so they do not count as unknown inputs."""
_ZERO = re.compile(r"0+(?:\.0+)?(?![.\d])")


@dataclass(frozen=True, slots=True)
class Unknown:
    """An input that the scenario marks UNKNOWN.  `path`: its path in the scenario document.

    `assumed`: its value there, or None if it is the question of a section or of the whole scenario.
    """

    path: DocumentPath
    assumed: Any
    question: str
    known: str = ""  # what is known about the value, e.g. ``at least the 1,186/s that it emits.``

    @property
    def key(self) -> str:
        """Return the key for an override."""
        return key_of(self.path)

    @property
    def name(self) -> str:
        """Return a description of the input, e.g. ``sink: state size``."""
        if self.vertex:
            return f"{self.vertex}: {' '.join(str(step) for step in self.path[2:])}"
        return " ".join(map(str, self.path))

    @property
    def vertex(self) -> str:
        """Return the vertex to which the input belongs, or "" if it belongs to none."""
        return str(self.path[1]) if self.path[0] == "job" else ""

    @property
    def is_setting(self) -> bool:
        return self.path[0] == "checkpoint" and self.path[-1] in _SETTINGS


def unknowns(text: str, pattern: re.Pattern[str] = _MARK) -> list[Unknown]:
    """Return the inputs that the text of a scenario marks UNKNOWN, in order.

    A mark is a comment at the end of the line of a value, or in the lines above it.
    """
    reading = Reading("scenario")
    plain = compose(text, reading)
    places: dict[int, DocumentPath] = {}
    for path, mark in sorted(reading.marks.items(), key=lambda item: (item[1].line, item[1].column)):
        if path:
            places.setdefault(mark.line, path)
    lines = text.splitlines()
    inputs = []
    for number, line in enumerate(lines, 1):
        if (match := pattern.search(line)) is None:
            continue
        remark, at = [match[1]], number
        if line.lstrip().startswith("#"):
            at += 1
            while at <= len(lines) and lines[at - 1].lstrip().startswith("#"):
                remark.append(lines[at - 1].lstrip(" #"))
                at += 1
        if (path_at := places.get(at)) is not None:
            question, _, remark_on_value = " ".join(remark).partition("Assumed:")
            value = value_at(plain, path_at)
            if isinstance(value, dict) or path_at == (
                "version",
            ):  # a question about a section, or at the head of the file
                value, remark_on_value = None, ""
            inputs.append(Unknown(path_at, value, question.strip(), remark_on_value.strip()))
    return inputs


def marked_unknowns(bench: Bench) -> list[Unknown]:
    """Return the inputs marked UNKNOWN, without those that are overridden."""
    return [unknown for unknown in unknowns(bench.file.read_text(encoding="utf-8")) if unknown.key not in bench.common]


def assumed_text(marked: Sequence[Unknown], mtbf_ms: float | None = None) -> str:
    """Return e.g. ``UNKNOWN, assumed: sink: state size 0 B, ...``, with zeros first, or "" if nothing is assumed.

    `mtbf_ms`: assumed mean time between failures.
    """
    resting = sorted(
        (unknown for unknown in marked if not unknown.is_setting and unknown.assumed is not None),
        key=lambda unknown: not _ZERO.match(str(unknown.assumed)),
    )
    texts = [f"{unknown.name} {unknown.assumed}" for unknown in resting]
    texts += [] if mtbf_ms is None else [f"a failure every {ms_text(mtbf_ms)}"]
    return f"UNKNOWN, assumed: {', '.join(texts)}" if texts else ""


def questions(search: CandidateSearch, marked: Sequence[Unknown], mtbf_ms: float | None) -> Iterator[str]:
    """Yield a question for each unknown value.

    `mtbf_ms`: mean time between failures, or None if it is unknown.
    """
    if mtbf_ms is None:
        yield f"UNKNOWN: how often does the job fail? Assumed: every {ms_text(1e3 * search.mtbf_s)}; --mtbf says otherwise."
    for key in search.unasked_updates(search.runs):
        name = str(path_of(key)[1])
        state = search.scenario.job.vertex(name).state
        size = "" if state is None else f", of {bytes_text(state.value_bytes)} each"
        yield (
            f"UNKNOWN: Which share of the records that '{name}' reads rewrites an entry of its state, and how large is one "
            "(value)? The file does not say, and full snapshots do not show it. Assumed: all of them"
            f"{size}, so increments and a changelog write no more than what is said here ({key})."
        )
    for unknown in marked:
        assumed = f" Assumed: {unknown.known}" if unknown.known else ""
        if unknown.assumed is None:
            yield f"UNKNOWN: {unknown.question}"
            continue
        rests = "Only what is said of today" if unknown.is_setting else "The answer"
        yield (
            f"UNKNOWN: {unknown.question}{assumed} {rests} rests on {unknown.key} = {unknown.assumed}. "
            f"Measure it, and say it with --set {unknown.key}=VALUE."
        )
    storage = search.scenario.storage
    is_shared = storage.dfs is not None or storage.object_store is not None
    has_state = any(vertex.state is not None for vertex in search.scenario.job.vertices)
    if is_shared and has_state and storage.nic_bytes_per_second is None:
        yield "Assumed: no network card of a TaskManager limits what it uploads (storage.nic)."
