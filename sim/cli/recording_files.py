"""Which files of a folder are taken for recordings."""

from __future__ import annotations

from pathlib import Path

from sim.cli.console.errors import print_message

__all__ = ["in_folder"]


def in_folder(folder: Path) -> list[Path]:
    """By their endings; a pipe or a device, which might never end, is skipped and named."""
    named = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz"), *folder.glob("*.zip")])
    for path in named:
        if not path.is_file():
            print_message(f"skipped: {path}: is no ordinary file")
    return [path for path in named if path.is_file()]
