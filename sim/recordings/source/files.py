"""Foreign files, plain or compressed.  Any fault of a file becomes a `RecordingError` that names it."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from sim.foreign import Readable, one_line
from sim.recordings.source.budget import Budget, BudgetError

LARGEST_BYTES = 200_000_000  # a long recording has 0.5 MB
_GZIP = b"\x1f\x8b"
ZIP = b"PK\3\4"
_MAX_NAMED = 5  # number of mistakes in one message


class RecordingError(Readable, ValueError):
    """The file is no readable recording; the message names the file and the mistake."""


def parse(path: Path, *, largest_bytes: int = LARGEST_BYTES) -> Any:
    """The JSON in a file, compressed or not."""
    return _parse(path, _content(path, largest_bytes))


def refuse_special(path: Path) -> None:
    """RecordingError: the file is a pipe or a device, which may keep its reader waiting for ever."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # a later reader reports the error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise RecordingError(f"{path}: is a pipe or a device: write its content into a file, or give it to `ckptsim explain -`")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | GzipFile]:
    """The uncompressed bytes of a file.  RecordingError: it cannot be read, or is damaged."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            yield file
    except RecordingError:  # raised by the user of the file
        raise
    except EOFError:
        raise RecordingError(f"{path}: the compressed file is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise RecordingError(f"{path}: the compressed file is damaged ({error})") from None
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        raise RecordingError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _content(path: Path, largest_bytes: int) -> bytes:
    """The uncompressed bytes; reading stops at the limit, so a zip bomb is not inflated."""
    if path.is_dir():
        raise RecordingError(f"{path}: is a directory; name one recording in it")
    with opened(path) as file:
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise RecordingError(f"{path}: holds more than {largest_bytes} bytes; no recording does")
    return content


def _parse(path: Path, content: bytes) -> Any:
    if not content.strip():
        raise RecordingError(f"{path}: is empty")
    try:
        return Budget().parse(content, path.name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        is_zip = content[: len(ZIP)] == ZIP or path.suffix == ".zip"
        raise RecordingError(f"{path}: {'is no zip, or a damaged one' if is_zip else 'is not JSON: it is no text'}") from None
    except JSONDecodeError as error:
        raise RecordingError(f"{path}: is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, lists nested without end
        raise RecordingError(f"{path}: is not JSON we accept: {error}") from None


def summary(error: ValidationError) -> str:
    """The first mistakes, and the number of the others: ``checkpoints.list.3.id: Input should be a valid integer; ...``."""
    mistakes = error.errors(include_url=False)
    named = [f"{'.'.join(map(one_line, mistake['loc'])) or 'the recording'}: {mistake['msg']}" for mistake in mistakes[:_MAX_NAMED]]
    others = f"; and {len(mistakes) - _MAX_NAMED} more" if len(mistakes) > _MAX_NAMED else ""
    return "; ".join(named) + others
