"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside it that then takes its place; if it cannot (a full disk, Ctrl-C), what was there before stays."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
