"""Write a document as readable scenario text: short mappings on one line, comments at their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sim.model.schema.text import DocumentPath, dotted
from sim.model.text import printable
from sim.model.units import format_number

SCHEMA_FILE = "ckptsim.schema.json"
SCHEMA_LINE = f"# yaml-language-server: $schema=./{SCHEMA_FILE}"
WIDTH = 120
ALWAYS_BLOCK = ("job", "flink")

_PLAIN = re.compile(r"[A-Za-z0-9_/.+<=>$(][A-Za-z0-9_/.+<=>$()%µ|~^;@* -]*(:[A-Za-z0-9_/.+-]+)*")
# or a number to YAML
_NOT_TEXT = re.compile(r"(true|false|null|[-+.0-9]*(inf|nan)|0[xo].*|[-+.0-9][-+.0-9e:_]*|[<=>].*)", re.IGNORECASE)
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?")  # ... which reads back as it is written


def write(document: Mapping[str, Any], question: str, comments: Mapping[str, str] | Sequence[str] = ()) -> str:
    """Return the text of a scenario file, from which `load` reads the same document.

    `comments` are lines for the head of the file, or texts by dotted path (``job.sink.service``, "" for the head).
    """
    by_path = dict(comments) if isinstance(comments, Mapping) else {"": "\n".join(comments)} if comments else {}
    lines = [SCHEMA_LINE, *(f"# {line}".rstrip() for line in printable(question).splitlines() or [""])]
    if head := by_path.pop("", ""):
        lines += ["", *(f"# {line}".rstrip() for line in printable(head).splitlines())]
    writer = _Writer(by_path)
    writer.mapping(document, (), 0)
    if left := set(by_path) - writer.used:
        raise KeyError(f"comments at keys that are not in the document: {', '.join(sorted(left))}")
    return "\n".join([*lines, *writer.lines]) + "\n"


def with_schema_line(text: str, folder: Path | None) -> str:
    """Return the text for a file in a folder, or for a pipe (None).

    The line that names the schema, for editors, is kept only if the schema is in that folder.
    """
    if folder is not None and (folder / SCHEMA_FILE).is_file():
        return text
    return text.removeprefix(f"{SCHEMA_LINE}\n")


class _Writer:
    """Writes scenario text."""

    def __init__(self, comments: Mapping[str, str]) -> None:
        self.comments = comments
        # sections with comments inside
        self.commented = {name[:i] for name in comments for i, c in enumerate(name) if c in ".["}
        self.used: set[str] = set()
        self.lines: list[str] = []

    def mapping(self, mapping: Mapping[str, Any], path: DocumentPath, indent: int) -> None:
        for key, value in mapping.items():
            self._entry(str(key), value, (*path, str(key)), indent)

    def _entry(self, key: str, value: Any, path: DocumentPath, indent: int) -> None:
        start = " " * indent + _text(key) + ":"
        line = f"{start} {_flow(value)}"
        if isinstance(value, Mapping) and value and self._is_block(value, path, len(line)):
            self._line(start, path, indent)
            self.mapping(value, path, indent + 2)
        elif isinstance(value, Sequence) and not isinstance(value, str) and value and len(line) > WIDTH:
            self._line(start, path, indent)
            self.lines += [" " * indent + f"  - {_flow(item)}" for item in value]
        else:
            self._line(line, path, indent)

    def _is_block(self, value: Mapping[str, Any], path: DocumentPath, width: int) -> bool:
        """Return whether a mapping is written as a block: it contains sections or comments, or does not fit on a line."""
        inside = dotted(path) in self.commented
        wide = len(path) == 1 and len(value) > 3
        return inside or wide or width > WIDTH or (len(path) == 1 and path[0] in ALWAYS_BLOCK)

    def _line(self, line: str, path: DocumentPath, indent: int) -> None:
        """Return a line with its comment at the end, or above if it is too wide."""
        comment = printable(self.comments.get(dotted(path), ""))
        if comment:
            self.used.add(dotted(path))
        if comment and "\n" not in comment and len(line) + len(comment) + 4 <= WIDTH:
            line += f"  # {comment}"
        else:
            self.lines += [" " * indent + f"# {part}".rstrip() for part in comment.splitlines()]
        self.lines.append(line)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and _NUMBER.fullmatch(str(value)):
        return str(value)  # 1.20 is a version of Flink, and no 1.2
    if isinstance(value, float):
        value = Decimal(repr(value))
    return format_number(Fraction(value)) if isinstance(value, (int, Decimal, Fraction)) else _text(str(value))


def _text(text: str) -> str:
    """Return a text unquoted if YAML reads it back unchanged, otherwise quoted."""
    is_text = _PLAIN.fullmatch(text) and not _NOT_TEXT.fullmatch(text) and not text.endswith(" ")
    if is_text or _NUMBER.fullmatch(text):
        return text
    escaped = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return '"' + "".join(escaped) + '"'
