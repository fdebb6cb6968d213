"""Print untrusted text safely, hide credentials and other secrets, and form sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import field
from difflib import get_close_matches
from functools import lru_cache

from sim.model.frozen import frozen

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


# ---- Secrets in free text of a job, such as names of operators, failure messages and lines of a log.
#
# Answers of Flink's REST API are reduced to the fields that are read (`sim.jobs.source.rest_answers`); this is for the text
# in these fields.  A secret is found if something names it, or if it is part of an address.  Unquoted ones end at a blank.
# Patterns rather mask too much than too little, because a secret that was sent cannot be recalled.

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT
_MAX_TEXT_CHARS = 100_000  # characters of one text; what follows is left out
_LAST_WORD = re.compile(r"\S*\Z")

# GlobalConfiguration.SENSITIVE_KEYS, and more
_SECRET_NAME = r"""
    (?:passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|signature|authorization|cookie|connection[-_.]?string
    |(?:api|access|account|service|private|shared|sas|encryption|signing)[-_. ]?key|auth[-_.]?params|basic[-_.]?auth
    |jaas[-_.]?config|http[-_.]?headers|java[-_.]?opts|(?<=\.)auth(?![\w.-])|(?<!by)(?<!com)pass(?![a-z]|-through))
    [\w.-]{0,60}"""
_QUOTED = r"""(?P<quote>\\*["'])(?:''|(?!(?P=quote))\\?.)*(?:(?P=quote)|\Z)"""
_BARE = r"""[^\s"']*[^\s"',;)\]}]"""
_SECRET = rf"""(?P<name>
      {_SECRET_NAME}["'\\\])}}]{{0,8}}\s{{0,3}}(?:={{1,3}}+>?+|:=?+|%3[AD]|\\u003[ad])\s{{0,3}}+  # password = x
    | {_SECRET_NAME}["'\\]{{0,8}}\s{{1,3}}(?=\\*["'])                                  # PASSWORD 'x'
    | (?<![\w-])--?[\w.-]{{0,80}}?{_SECRET_NAME}\s{{1,3}}+                             # --db-password x
    | \b(?:bearer|basic)\s{{1,3}}+
    )(?!\*{{6}})(?:(?:bearer|basic)\s{{1,3}})?(?:{_QUOTED}|{_BARE})
    | (?<=//)[^\s"<>/]{{0,200}}:[^\s"<>]{{0,200}}(?=@) | (?<=https://)[^\s"<>/]{{1,200}}(?=@)"""


def masked_text(text: str) -> str:
    """Return the text with secrets masked."""
    if len(text) > _MAX_TEXT_CHARS:
        # an address that is cut off does not show that it begins with a password
        text = _LAST_WORD.sub("...", text[:_MAX_TEXT_CHARS], count=1)
    flags = re.IGNORECASE | re.DOTALL | re.VERBOSE  # compiled at the first use: most commands do not need it
    return re.sub(_SECRET, lambda found: f"{found['name'] or ''}{HIDDEN}", text, flags=flags)


@lru_cache(maxsize=4096)  # the combinations of a sweep have the same configuration
def masked_value(key: str, value: str) -> str:
    """Return the value of a key of Flink's configuration, masked if it is a secret or contains one."""
    return HIDDEN if masked_text(f"{key}: x") != f"{key}: x" else masked_text(value)


def masked_change(change: str) -> str:
    """Return an override, ``flink.KEY=value``, with a secret masked; others are unchanged."""
    key, _, value = change.partition("=")
    if not key.startswith("flink"):
        return change
    masked = masked_value(key, value)
    return f'{key}="{masked}"' if masked == HIDDEN else f"{key}={masked}"


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


@frozen
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
