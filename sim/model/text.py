"""Text from outside the program, shown safely: names, addresses without credentials, prose."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

# ---- Foreign text (names of jobs, keys of files, answers of servers), made fit for printing.
#
# A terminal obeys control characters, and bidi overrides reorder a line: both are escaped, as Python does (``\x1b``).
# Long texts are shortened: a key of thousands of characters is unreadable.

MAX_NAME_CHARS = 80  # characters of one name
MAX_QUOTE_CHARS = 100  # ... of quoted text
MAX_WORD_CHARS = 200  # ... without a blank: paths have no more
MAX_LINE_LENGTH = 2000
_QUOTE = re.compile(rf"(?<!\w)'[^'\n]{{{MAX_QUOTE_CHARS + 1},}}'(?!\w)")
_WORD = re.compile(rf"[^ \n]{{{MAX_WORD_CHARS + 1},}}")
_LINE = re.compile(rf"[^\n]{{{MAX_LINE_LENGTH + 1},}}")


def one_line(text: object, longest: int = MAX_NAME_CHARS) -> str:
    """A name on one line, shortened."""
    beginning = str(text)[: 4 * longest]  # enough to know that it is cut
    return _cut(_escaped(" ".join(beginning.split())), longest)


def printable(text: object) -> str:
    """A message of any number of lines, with long quotes, words and lines shortened."""
    lines = _escaped(str(text)[: 100 * MAX_LINE_LENGTH].replace("\t", " "), kept="\n")
    lines = _QUOTE.sub(lambda quote: f"'{_cut(quote[0][1:-1], MAX_QUOTE_CHARS)}'", lines)
    lines = _WORD.sub(lambda word: _cut(word[0], MAX_WORD_CHARS), lines)
    return _LINE.sub(lambda line: _cut(line[0], MAX_LINE_LENGTH), lines)


class PrintableError(Exception):
    """An error whose message may hold foreign text."""

    def __str__(self) -> str:
        return printable(super().__str__())


def _escaped(text: str, kept: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, longest: int) -> str:
    """The text, or its beginning and end if it is too long: the end of a path is the most specific part."""
    if len(text) <= longest:
        return text
    end = longest // 4
    return f"{text[: longest - end - 3]}...{text[-end:]}"


# ---- Helpers for sentences: capitalise, join a list.


def capitalised(text: str) -> str:
    """With a capital at its beginning; the rest stays as it is, unlike with `str.capitalize`."""
    return text[:1].upper() + text[1:]


def listed(names: Collection[str]) -> str:
    """``a, b and c``; empty: nothing."""
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last


# ---- Addresses of servers, whose text never has credentials: messages, kept commands and pages may be sent to others.

_AUTHORITY = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server.  `str` and `repr` have neither its credentials nor its query; `url` is for requests only."""

    url: str = field(repr=False)

    @staticmethod
    def is_address(text: object) -> bool:
        """Whether the text is an address and not a path."""
        return isinstance(text, Address) or "://" in str(text)

    def __str__(self) -> str:
        return without_credentials(self.url).partition("?")[0]

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def without_credentials(text: str) -> str:
    """``http://user:secret@host/x`` -> ``http://host/x``; other texts stay as they are."""
    return _AUTHORITY.sub(r"\1", text)
