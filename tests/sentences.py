"""The rule of sentences, for docstrings, comments and pages alike: at most 30 words."""

import re
from collections.abc import Iterator

__all__ = ["MAX_WORDS", "long_sentences"]

MAX_WORDS = 30


def long_sentences(text: str) -> Iterator[str]:
    """Sentences of running text that are too long, with their number of words; what stands in backticks counts as one word."""
    for paragraph in _paragraphs(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        for sentence in re.split(r"(?<=[.!?])[\"')\]]*\s+", paragraph):
            if (count := len(re.findall(r"\S*\w\S*", re.sub(r"`[^`]*`", "code", sentence)))) > MAX_WORDS:
                yield f"{count} words: {sentence}"


def _paragraphs(text: str) -> Iterator[str]:
    """Running text only, an item of a list by itself: code, tables and drawings are no sentences."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        item = re.match(r"([-*+] |\d+[.)] )", line)
        is_text = line.strip() and not re.match(r"\s|[>|] |#+ ", line) and not re.search(r"\S {3,}\S|\|", line)
        if lines and (item or not is_text):
            yield " ".join(lines)
            lines = []
        if is_text:
            lines.append(line[item.end() :] if item else line)
