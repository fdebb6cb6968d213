"""Parse YAML to plain values with positions, report errors with file and line, and write readable YAML."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as AbcMapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from sim.model.frozen import frozen
from sim.model.text import PrintableError, did_you_mean, one_line, printable
from sim.model.units import format_number

# ---- Errors and warnings with positions.

DocumentPath = tuple[str | int, ...]
"""Path in a document: keys and list indices from the top."""


MAX_GUESSES = 50


@frozen
class Mark:
    """The position of a key: line and column from 1; line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""  # shown instead of the path in the document, when the value came from elsewhere (`flink:`)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """An error or warning with its position; `path` is dotted, e.g. ``job.enrich.parallelism``."""

    file: str
    line: int
    column: int
    path: str
    message: str
    is_note: bool = False  # whether it informs about what was done, rather than warns

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return printable(": ".join(part for part in (place, self.path, self.message) if part))


class ScenarioError(PrintableError):
    """The errors in a scenario file, one per line."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__(self.problems)

    @classmethod
    def of(cls, file: object, message: str) -> Self:
        """Return an error about a file as a whole."""
        return cls([Problem(str(file), 0, 0, "", message)])

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


@dataclass(slots=True)
class Reading:
    """The state of reading one document: positions of keys, errors and warnings."""

    file: str
    marks: dict[DocumentPath, Mark] = field(default_factory=dict)
    problems: dict[Problem, None] = field(default_factory=dict)  # an ordered set
    warnings: dict[Problem, None] = field(default_factory=dict)
    # configuration keys of Flink and of its Kubernetes operator that are not modelled -> their values
    written_keys: dict[str, str] = field(default_factory=dict)
    reads_files: bool = False  # whether the result depends on trace files, and therefore is not cached

    def wrong(self, path: DocumentPath, message: str) -> None:
        """Add an error."""
        self.problems[self._at(path, message)] = None

    def warn(self, path: DocumentPath, message: str) -> None:
        """Add a warning."""
        self.warnings[self._at(path, message)] = None

    def note(self, path: DocumentPath, message: str) -> None:
        """Add a note, which informs about what was done."""
        self.warnings[replace(self._at(path, message), is_note=True)] = None

    def stop_if_wrong(self) -> None:
        """Raise `ScenarioError` with all errors, if there are any."""
        if self.problems:
            raise ScenarioError(self.problems)

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """Return a hint with similar words, or "" after `MAX_GUESSES` errors, because guessing is slow."""
        return did_you_mean(word, known) if len(self.problems) < MAX_GUESSES else ""

    def _at(self, path: DocumentPath, message: str) -> Problem:
        """Return a problem at the position of a path, or of the nearest key above it."""
        mark = next((self.marks[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.marks), Mark(self.file))
        return _problem(mark, path, message)


def _problem(mark: Mark, path: DocumentPath, message: str) -> Problem:
    """Return a problem at a mark.  Keys are shortened and printed on one line, because each problem is a line."""
    named = tuple(step if isinstance(step, int) else one_line(step) for step in path)
    return Problem(mark.file, mark.line, mark.column, mark.path or dotted(named), message)


P = ParamSpec("P")
T = TypeVar("T")
MAX_REMEMBERED = 64


def cached_builder(build: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of a builder.  One of its arguments must be a `Reading`, which gets the errors and warnings.

    The combinations of a sweep share the unchanged parts of the document, so that their models are built only once.  Sections are
    compared by identity; paths, texts, numbers and tuples by value.  Results with errors, and those that depend on trace files, are
    not cached.
    """
    kept: dict[tuple[Any, ...], tuple[tuple[Any, ...], T, dict[Problem, None]]] = {}

    @wraps(build)
    def result(*args: P.args, **kwargs: P.kwargs) -> T:
        arguments = (*args, *kwargs.values())
        (reading,) = (value for value in arguments if isinstance(value, Reading))
        key = tuple(
            value if isinstance(value, Path | str | int | tuple | None) else 0 if value is reading else id(value)
            for value in arguments
        )
        if key in kept:
            kept[key] = kept.pop(key)  # now the newest
        else:
            inner_reading = Reading(reading.file, reading.marks, written_keys=reading.written_keys)
            made = build(*(inner_reading if value is reading else value for value in args), **kwargs)  # type: ignore[arg-type]
            reading.problems.update(inner_reading.problems)
            reading.warnings.update(inner_reading.warnings)
            reading.reads_files |= inner_reading.reads_files
            if inner_reading.problems or inner_reading.reads_files:
                return made
            if len(kept) == MAX_REMEMBERED:
                del kept[next(iter(kept))]  # the one not used for longest
            # `arguments` are kept alive, so that their ids are not reused
            kept[key] = (arguments, made, inner_reading.warnings)
        _, made, inner_warnings = kept[key]
        reading.warnings.update(inner_warnings)
        return made

    return result


def dotted(path: DocumentPath) -> str:
    """Return a path as text: ``("job", "a", "input", 0)`` -> ``job.a.input[0]``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


# ---- YAML text -> plain mappings, lists and scalars, with the position of every key.
#
# Rejects files that are not scenarios, and malicious ones (binary, huge, deeply nested, alias bombs).

MAX_BYTES = 10**6
"""Enough for ten thousand vertices; long series of rates belong in a trace file."""
MAX_NODES = 100_000  # with aliases expanded
MAX_DEPTH = 40
_PACKED = (b"\x1f\x8b", b"PK\x03\x04")
"""Magic numbers of gzip and zip, in which recordings and saved answers are stored."""

_TAG = "tag:yaml.org,2002:"


class Mapping(dict[str, Any]):
    """A mapping of the document, with its path and a cache of what was read from it.  It must be copied (`copy_node`) to be changed."""

    __slots__ = ("path", "read")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.path: DocumentPath = ()
        self.read: dict[Any, Any] = {}

    def at(self, path: DocumentPath) -> Mapping:
        """Set the path of the mapping in the document, and return the mapping."""
        self.path = path
        return self


def copy_node(node: Any, *, deep: bool = False) -> Any:
    """Copy a mapping or a list, so that it can be changed; with `deep`, also everything in it."""
    inner = copy_node if deep else lambda value, **_: value
    if isinstance(node, Mapping):
        return Mapping((key, inner(value, deep=True)) for key, value in node.items()).at(node.path)
    return [inner(item, deep=True) for item in node] if isinstance(node, list) else node


def read_text(file: Path) -> str:
    """Return the text of a scenario file.  Raises `ScenarioError`."""
    data = _data(file, "scenario file (.yaml)")
    if data.startswith(_PACKED) or file.name.endswith((".json", ".json.gz")):
        raise ScenarioError.of(
            file, "is not a scenario: 'ckptsim import' makes one of a recording, of saved answers or of logs"
        )
    if len(data) > MAX_BYTES:
        advice = "put long rates into a trace file (rate: {trace: file.csv})"
        raise ScenarioError.of(file, f"is larger than {MAX_BYTES // 10**6} MB; {advice}")
    text = _decoded(file, data)
    if "\0" in text:
        raise ScenarioError.of(file, "is a binary file; a scenario is YAML text")
    return text


def read_referenced_text(file: Path) -> str:
    """Return the text of a file that a scenario refers to.  Raises `ScenarioError` with one problem."""
    data = _data(file, "file")
    if len(data) > MAX_BYTES:
        raise ScenarioError.of(file, f"is larger than {MAX_BYTES // 10**6} MB")
    return _decoded(file, data)


def _data(file: Path, expected: str) -> bytes:
    """Return the content of a file, up to one byte more than the limit."""
    try:
        if file.is_dir():
            raise ScenarioError.of(file, f"is a directory; a {expected} was expected")
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ScenarioError.of(file, "no such file") from None
    except OSError as error:
        raise ScenarioError.of(file, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise ScenarioError.of(file, f"cannot be read: {error}") from None


def _decoded(file: Path, data: bytes) -> str:
    """Return UTF-8 data as text, without a byte order mark.  Raises `ScenarioError` with the first line that is invalid."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ScenarioError([Problem(str(file), line, 1, "", "is not UTF-8 text")]) from None


def first_comment(text: str) -> str:
    """Return the question of a scenario: the first comment before any key, without the line that names the schema."""
    lines: list[str] = []
    for line in map(str.strip, text.removeprefix("\ufeff").splitlines()):
        if line.startswith("#") and not line.startswith("# yaml-language-server:"):
            lines.append(line.lstrip("#").strip())
        elif lines or (line and not line.startswith(("#", "---", "%"))):
            break
    return " ".join(filter(None, lines))


def compose_document(text: str, reading: Reading) -> Any:
    """Parse a whole file.  Cached for the combinations of a sweep, so only the top level of the result may be changed."""
    plain, source = _composed(text, reading.file)
    reading.marks.update(source.marks)
    reading.problems.update(source.problems)
    return copy_node(plain)


@lru_cache(8)
def _composed(text: str, file: str) -> tuple[Any, Reading]:
    """Return (plain value of a file, reading with its marks and problems).  Neither may be changed, because they are cached."""
    reading = Reading(file)
    return compose(text, reading), reading


def compose(text: str, reading: Reading, path: DocumentPath = ()) -> Any:
    """Parse a YAML text to a plain value.  Positions are added to ``reading.marks``, errors to ``reading.problems``."""
    if _open_brackets(text) > 1000:  # YAML libraries take quadratic time for these
        reading.wrong((), f"is nested more than {MAX_DEPTH} levels deep")
        return None
    try:
        node = _nodes(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reading.marks[()] = Mark(reading.file, mark.line + 1, mark.column + 1) if mark else Mark(reading.file)
        message = " ".join(str(part) for part in (error.problem, error.context) if part)
        if "'\\t'" in message:
            message = "a line begins with a tab: indent it by spaces"
        reading.wrong((), f"is not YAML: {message}")
        return None
    except YAMLError as error:
        reading.wrong((), f"is not YAML: {' '.join(str(error).split())}")
        return None
    except RecursionError:
        reading.wrong((), f"is nested more than {MAX_DEPTH} levels deep")
        return None
    return None if node is None else _Plain(reading).value(node, path, 0)


@lru_cache(256)
def _nodes(text: str) -> Node | None:
    """Return the nodes of a text, which must not be changed.  Cached, because sweeps parse the same texts often."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", YAMLWarning)  # an anchor may be used again
        return cast("Node | None", YAML(typ="safe", pure=True).compose(text))


def _open_brackets(text: str) -> int:
    """Return the maximum depth of brackets, including those in quotes and comments."""
    depth = max_depth = 0
    for bracket in re.finditer(r"[\[{\]}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        max_depth = max(max_depth, depth)
    return max_depth


class _Plain:
    """Converts a node tree to plain values.  Aliases are expanded, and counted."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.left = MAX_NODES

    def value(self, node: Node, path: DocumentPath, depth: int) -> Any:
        """Return the plain value of a node.  Raises `ScenarioError` if there are too many values or levels."""
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            few = f"has more than {MAX_NODES} values, aliases written out"
            what = few if self.left < 0 else f"is nested more than {MAX_DEPTH} levels deep"
            raise ScenarioError([_problem(self._mark_of(node), (), what)])
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            for i, item in enumerate(node.value):
                self._mark(item, (*path, i))
            return [self.value(item, (*path, i), depth + 1) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: DocumentPath, depth: int) -> Mapping:
        """Return the plain mapping of a node, without keys that are invalid or set twice, which are reported as errors."""
        plain = Mapping().at(path)
        for key_node, value_node in node.value:
            key = self._text(key_node, path) if isinstance(key_node, ScalarNode) else ""
            here = (*path, key)
            if not isinstance(key_node, ScalarNode) or not key:
                self._wrong(key_node, path, "keys are plain words")
            elif str(key_node.tag) == _TAG + "merge":
                self._wrong(key_node, here, "merge keys are not read: write the keys out")
            elif key in plain:
                first = self.reading.marks[here]
                self._wrong(key_node, here, f"key is given twice; the first is on line {first.line}")
            else:
                self._mark(key_node, here)
                plain[key] = self.value(value_node, here, depth + 1)
        return plain

    def _scalar(self, node: Node, path: DocumentPath) -> Any:
        """Return the value of a scalar: None, bool, int or Decimal.  Others, such as ``0x10`` and dates, remain texts."""
        tag, text = str(node.tag), self._text(node, path)
        kind = tag.removeprefix(_TAG)
        if kind == tag or kind not in ("str", "int", "float", "bool", "null", "timestamp"):
            self._wrong(node, path, f"tag '{tag}' is not understood: write a plain value")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int" and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            return int(text)
        if kind == "float" and re.fullmatch(r"[+-]?[0-9]{1,30}\.[0-9]{1,30}", text):
            return Decimal(text)  # keeps 1.20 apart from 1.2
        return text

    def _text(self, node: Node, path: DocumentPath) -> str:
        """Return the text of a node.  Surrogates are rejected, because they cannot be written to a file."""
        text = str(node.value)
        encodable = text.encode("utf-8", "replace").decode()
        if encodable != text:
            self._wrong(node, path, "holds half a character (a UTF-16 surrogate): write the whole one")
        return encodable

    def _mark(self, node: Node, path: DocumentPath) -> None:
        """Record the position of a node as that of a path."""
        self.reading.marks[path] = self._mark_of(node)

    def _wrong(self, node: Node, path: DocumentPath, message: str) -> None:
        """Add an error at the position of a node."""
        self.reading.problems[_problem(self._mark_of(node), path, message)] = None

    def _mark_of(self, node: Node) -> Mark:
        return Mark(self.reading.file, node.start_mark.line + 1, node.start_mark.column + 1)


def value_at(node: Any, path: DocumentPath) -> Any:
    """Return the value at a path of a document, or None if there is none."""
    for step in path:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return None
    return node


# ---- Assumed values: the comments that ``ckptsim import`` marks UNKNOWN.

_MARKED = re.compile(r"(?:^|\s)#\s*UNKNOWN:")
LISTED_LINES = 6  # lines named in one sentence


def assumptions_note(text: str) -> str:
    """Return for example ``3 values are assumed, see UNKNOWN in lines 4, 9, 17``; empty if there are none."""
    lines = [str(number) for number, line in enumerate(text.splitlines(), 1) if _MARKED.search(line)]
    if not lines:
        return ""
    places = ", ".join(lines[:LISTED_LINES]) + (" ..." if len(lines) > LISTED_LINES else "")
    plural = len(lines) > 1
    return (
        f"{len(lines)} value{'s are' if plural else ' is'} assumed, see UNKNOWN in line{'s' if plural else ''} {places}"
    )


# ---- Write a document as readable scenario text: short mappings on one line, comments at their keys.

SCHEMA_FILE = "ckptsim.schema.json"
SCHEMA_LINE = f"# yaml-language-server: $schema=./{SCHEMA_FILE}"
WIDTH = 120
ALWAYS_BLOCK = ("job", "flink")

_PLAIN = re.compile(r"[A-Za-z0-9_/.+<=>$(][A-Za-z0-9_/.+<=>$()%µ|~^;@* -]*(:[A-Za-z0-9_/.+-]+)*")
# or a number to YAML
_NOT_TEXT = re.compile(r"(true|false|null|[-+.0-9]*(inf|nan)|0[xo].*|[-+.0-9][-+.0-9e:_]*|[<=>].*)", re.IGNORECASE)
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?")  # ... which reads back as it is written


def write(document: AbcMapping[str, Any], question: str, comments: AbcMapping[str, str] | Sequence[str] = ()) -> str:
    """Return the text of a scenario file, from which `load` reads the same document.

    `comments` are lines for the head of the file, or texts by dotted path (``job.sink.service``, "" for the head).
    """
    by_path = dict(comments) if isinstance(comments, AbcMapping) else {"": "\n".join(comments)} if comments else {}
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

    def __init__(self, comments: AbcMapping[str, str]) -> None:
        self.comments = comments
        # sections with comments inside
        self.commented = {name[:i] for name in comments for i, c in enumerate(name) if c in ".["}
        self.used: set[str] = set()
        self.lines: list[str] = []

    def mapping(self, mapping: AbcMapping[str, Any], path: DocumentPath, indent: int) -> None:
        for key, value in mapping.items():
            self._entry(str(key), value, (*path, str(key)), indent)

    def _entry(self, key: str, value: Any, path: DocumentPath, indent: int) -> None:
        start = " " * indent + _text(key) + ":"
        line = f"{start} {_flow(value)}"
        if isinstance(value, AbcMapping) and value and self._is_block(value, path, len(line)):
            self._line(start, path, indent)
            self.mapping(value, path, indent + 2)
        elif isinstance(value, Sequence) and not isinstance(value, str) and value and len(line) > WIDTH:
            self._line(start, path, indent)
            self.lines += [" " * indent + f"  - {_flow(item)}" for item in value]
        else:
            self._line(line, path, indent)

    def _is_block(self, value: AbcMapping[str, Any], path: DocumentPath, width: int) -> bool:
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
    if isinstance(value, AbcMapping):
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
