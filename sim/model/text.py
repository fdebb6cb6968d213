"""Print untrusted text safely, hide credentials of addresses, and form sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

# ---- Untrusted text (names of jobs, keys of files, answers of servers) for printing.
#
# Control characters, which a terminal obeys, and bidi overrides, which reorder a line, are escaped as in Python
# (``\x1b``).  Long texts are shortened.

MAX_NAME_CHARS = 80
MAX_QUOTE_CHARS = 100  # of quoted text
MAX_WORD_CHARS = 200  # without a blank; paths are shorter
MAX_LINE_LENGTH = 2000
_QUOTE = re.compile(rf"(?<!\w)'[^'\n]{{{MAX_QUOTE_CHARS + 1},}}'(?!\w)")
_WORD = re.compile(rf"[^ \n]{{{MAX_WORD_CHARS + 1},}}")
_LINE = re.compile(rf"[^\n]{{{MAX_LINE_LENGTH + 1},}}")


def one_line(text: object, longest: int = MAX_NAME_CHARS) -> str:
    """Return a name as one printable, shortened line."""
    beginning = str(text)[: 4 * longest]  # enough to know that it is cut
    return _cut(_escaped(" ".join(beginning.split())), longest)


def printable(text: object) -> str:
    """Return a printable message, with long quotes, words and lines shortened."""
    lines = _escaped(str(text)[: 100 * MAX_LINE_LENGTH].replace("\t", " "), kept="\n")
    lines = _QUOTE.sub(lambda quote: f"'{_cut(quote[0][1:-1], MAX_QUOTE_CHARS)}'", lines)
    lines = _WORD.sub(lambda word: _cut(word[0], MAX_WORD_CHARS), lines)
    return _LINE.sub(lambda line: _cut(line[0], MAX_LINE_LENGTH), lines)


class PrintableError(Exception):
    """An error whose message may contain untrusted text."""

    def __str__(self) -> str:
        return printable(super().__str__())


def _escaped(text: str, kept: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, longest: int) -> str:
    """Shorten a text to its beginning and end, because the end of a path is its most specific part."""
    if len(text) <= longest:
        return text
    end = longest // 4
    return f"{text[: longest - end - 3]}...{text[-end:]}"


# ---- Helpers for sentences: capitalise, join a list.


def capitalised(text: str) -> str:
    """Capitalise the first letter; unlike `str.capitalize`, leave the others unchanged."""
    return text[:1].upper() + text[1:]


def listed(names: Collection[str]) -> str:
    """Join names as ``a, b and c``."""
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a guess such as `` (did you mean 'timeout'?)``, or an empty text."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""


# ---- Addresses of servers.  Their text never contains credentials, because messages, commands and pages are shared.

_AUTHORITY = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server.  `str` and `repr` contain neither credentials nor query; `url` is for requests only."""

    url: str = field(repr=False)

    @staticmethod
    def is_address(text: object) -> bool:
        """Return whether a text is an address, not a path."""
        return isinstance(text, Address) or "://" in str(text)

    def __str__(self) -> str:
        return without_credentials(self.url).partition("?")[0]

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def without_credentials(text: str) -> str:
    """Return ``http://host/x`` for ``http://user:secret@host/x``; other texts are unchanged."""
    return _AUTHORITY.sub(r"\1", text)
