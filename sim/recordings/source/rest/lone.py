"""One answer of Flink's REST API on its own, as people paste it: with a prompt before it, with the prefix of a log, or cut off."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sim.recordings.source.budget import Budget, BudgetError
from sim.recordings.source.files import RecordingError, opened

LARGEST_BYTES = 50_000_000
_KINDS = (
    ("/jobs/JOB/checkpoints", {"counts", "history"}),
    ("/jobs/JOB/checkpoints/config", {"interval", "timeout", "mode"}),
    ("/jobs/JOB/checkpoints/details/N/subtasks/VERTEX", {"id", "status", "subtasks"}),
    ("/jobs/JOB/checkpoints/details/N", {"id", "status", "trigger_timestamp"}),
    ("/jobs/JOB/exceptions", {"exceptionHistory"}),
    ("/jobs/JOB/exceptions", {"root-exception", "all-exceptions"}),
    ("/jobs/JOB", {"jid", "vertices"}),
)
"""(path of the request, keys that its answer has), the surest first."""
_WEB_UI = re.compile(r"(?i)End to End Duration|Latest Acknowledgement")
_BEGIN = re.compile(r"\{\s*\"")
_MOST_BEGINNINGS, _MOST_CUTS = 50, 200


class LoneAnswer(NamedTuple):
    """An answer and the request that it belongs to."""

    name: str  # of the file
    path: str  # of the request, with JOB, N and VERTEX for ids
    document: dict[str, Any]
    cut: str = ""  # where it is cut off; empty: it is whole


def read_lone_answer(path: Path) -> LoneAnswer | None:
    """None: the file holds something else.  RecordingError: it cannot be read, or is text of Flink's web UI."""
    if path.is_dir() or not path.exists():
        return None
    with opened(path) as file:
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES or b"\0" in content[:1000]:
        return None
    try:
        Budget().check(content, path.name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {error}") from None
    text = content.decode("utf-8", "replace")
    at, is_first = 0, True
    for match in islice(_BEGIN.finditer(text), _MOST_BEGINNINGS):
        if match.start() < at:
            continue  # inside of the document before
        document, at, cut = _document(text, match.start())
        found = next((kind for kind, keys in _KINDS if isinstance(document, dict) and keys <= set(document)), None)
        if found is not None:
            return LoneAnswer(path.name, found, document, cut)
        if is_first and not text[: match.start()].strip():
            return None  # all of the file is a document of another kind
        is_first = False
    if _WEB_UI.search(text) and "{" not in text:
        raise RecordingError(
            f"{path.name}: is text of Flink's web UI, which rounds: save what it shows by "
            "curl -s http://HOST:8081/jobs/JOB/checkpoints > checkpoints.json"
        )
    return None


def _document(text: str, begin: int) -> tuple[Any, int, str]:
    """(the document that begins there or what is whole of it, where it ends, where it is cut off).  None: it is none."""
    try:
        return *json.JSONDecoder().raw_decode(text, begin), ""
    except (ValueError, RecursionError) as error:
        at = getattr(error, "pos", begin)
    if len(text.rstrip()) - at > _LONGEST_TOKEN:
        return None, begin, ""  # broken inside, not cut off
    where = f"cut off at character {len(text):,} (line {text.count(chr(10)) + 1:,})"
    return _whole_part(text[begin:].rstrip()), len(text), where


_LONGEST_TOKEN = 20_000
"""Characters; a stack trace that is cut off is one token."""


def _whole_part(text: str) -> Any:
    """What a document that is cut off says before that: it is closed after its last whole value."""
    open_ones, cuts, is_text, is_escaped = list[str](), list[tuple[int, str]](), False, False
    for at, sign in enumerate(text):
        if is_text:
            is_text, is_escaped = is_escaped or sign != '"', sign == "\\" and not is_escaped
        elif sign == '"':
            is_text = True
        elif sign in "{[":
            open_ones.append("}" if sign == "{" else "]")
        elif sign in "}]":
            if open_ones:
                open_ones.pop()
            cuts.append((at + 1, "".join(reversed(open_ones))))
        elif sign == ",":
            cuts.append((at, "".join(reversed(open_ones))))
    for at, closing in reversed(cuts[-_MOST_CUTS:]):
        try:
            return json.loads(text[:at] + closing)
        except (ValueError, RecursionError):
            continue
    return None
