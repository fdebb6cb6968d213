"""Prose for a terminal, which may be narrow, or for a pipe, which has no width."""

from __future__ import annotations

import os
import shutil
from textwrap import fill
from typing import TextIO

NARROWEST = 40
"""Characters: prose in fewer cannot be read."""


def fitted(text: str, stream: TextIO) -> str:
    """Lines no wider than the terminal, without a broken word; in a pipe the text as it is."""
    if not stream.isatty():
        return text
    width = max(NARROWEST, _width(stream))
    lines = text.split("\n")
    return "\n".join(fill(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width else line for line in lines)


def _width(stream: TextIO) -> int:
    """The columns of the terminal behind this stream; the other stream may be a file."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
