"""What a row of the list of rules says."""

from __future__ import annotations

import ast
import itertools
import re
from typing import NamedTuple


class Rule(NamedTuple):
    rule: str  # what holds
    file: str  # of the package, or of tests/
    text: str
    broken: str
    test: str  # must fail then
    inside: str = ""  # the function or class that has the text, where others of the module have it as well

    def places(self, source):
        """Where the text is, however the formatter has laid its lines."""
        first, last = self._lines(source)
        lines = source.splitlines(keepends=True)
        start, end = (sum(map(len, lines[:number])) for number in (first, last))
        return list(re.compile(_pattern(self.text)).finditer(source, start, end))

    def broken_source(self, source):
        """The module without the rule."""
        (place,) = self.places(source)
        return source[: place.start()] + self.broken + source[place.end() :]

    def _lines(self, source):
        first, last, body = 0, len(source.splitlines()), ast.parse(source).body
        for name in filter(None, self.inside.split(".")):
            node = next(node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name)
            first, last, body = node.lineno - 1, node.end_lineno or 0, node.body
        return first, last

    @property
    def path(self):
        """From the root of the repository."""
        return self.file if self.file.startswith("tests/") else f"sim/{self.file}"


def _pattern(text):
    """A regular expression for the text with other line breaks, and with a comma before a bracket on a line of its own."""
    inner = text.strip()
    lead, _, trail = text.partition(inner)
    tokens = re.findall(r"\w+|[^\w\s]", inner)
    words = [f",?\\s*{re.escape(token)}" if token in ")]}" else re.escape(token) for token in tokens]
    gaps = [
        r"\s+" if left[-1:].isidentifier() and right[:1].isidentifier() else r"\s*"
        for left, right in itertools.pairwise(tokens)
    ]
    between = "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))
    return re.escape(lead) + between + re.escape(trail)
