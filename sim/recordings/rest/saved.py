"""A snapshot as files: a folder or zip of JSON, each answer under its REST path, to be sent to a colleague and imported there again.

    jobs/<id>/checkpoints/config.json                  what /jobs/<id>/checkpoints/config answered
    samples/<epoch ms>/jobs/<id>/vertices/<id>/metrics.json    what was asked again and again
    source.json                                        where it was read

Only `jobs/...` must be there: answers that somebody saved by hand are read too.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.recordings.reader import LARGEST_BYTES, RecordingError
from sim.recordings.rest.snapshot import Snapshot, choose

__all__ = ["is_saved", "read_saved", "save"]

SOURCE, SAMPLES, SUFFIX = "source.json", "samples", ".json"
MOST_FILES = 200_000


def save(snapshot: Snapshot, folder: Path) -> None:
    """Into a folder that is new or empty.  OSError: it cannot be written.  FileExistsError: something else is there."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(17, "is not empty; --save writes into a new folder", str(folder))
    answers: dict[str, Any] = {"/source": {"source": snapshot.source, "job": snapshot.job}, **snapshot.answers}
    for time_ms, sample in snapshot.samples.items():
        answers |= {f"/{SAMPLES}/{time_ms}{path}": answer for path, answer in sample.items()}
    for path, answer in answers.items():
        file = folder.joinpath(*path.strip("/").split("/")).with_name(path.rpartition("/")[2] + SUFFIX)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


def is_saved(path: Path) -> bool:
    """A folder, or a zip by its content."""
    return path.is_dir() or zipfile.is_zipfile(path)


def read_saved(path: Path, job: str | None = None) -> Snapshot:
    """RecordingError: no answers of Flink, damaged ones, or several jobs and none chosen."""
    answers: dict[str, Any] = {}
    samples: dict[int, dict[str, Any]] = {}
    for name, content in _files(path):
        answer = _parse(path, name, content)
        steps = name.removesuffix(SUFFIX).split("/")
        if steps[0] == SAMPLES and len(steps) > 2 and steps[1].isdecimal() and len(steps[1]) <= 16:
            samples.setdefault(int(steps[1]), {})["/" + "/".join(steps[2:])] = answer
        else:
            answers["/" + "/".join(steps)] = answer
    source = answers.pop("/source", None)
    told = source if isinstance(source, dict) else {}
    wanted = job or (told["job"] if isinstance(told.get("job"), str) else None)
    return Snapshot(str(told.get("source", path.name)), choose(answers, wanted, str(path)), answers, dict(sorted(samples.items())))


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name below the folder that holds `jobs`, content) of every JSON file."""
    try:
        found = _in_folder(path) if path.is_dir() else _in_zip(path)
        names = sorted(found)
        roots = sorted({name[: name.index("jobs/")] for name in names if name.startswith("jobs/") or "/jobs/" in name}, key=len)
        if not roots:
            raise RecordingError(f"{path}: holds no saved answers of Flink's REST API: no file jobs/....json")
        left = LARGEST_BYTES
        for name in names:
            if name.startswith(roots[0]):
                content = found[name](left + 1)
                left -= len(content)
                if left < 0:
                    raise RecordingError(f"{path}: holds more than {LARGEST_BYTES} bytes; no saved answers do")
                yield name.removeprefix(roots[0]), content
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:  # RuntimeError: encrypted
        raise RecordingError(f"{path}: the zip is damaged or encrypted ({error})") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror or error})") from None


def _in_folder(path: Path) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(SUFFIX):
                file = Path(folder) / name
                found[file.relative_to(path).as_posix()] = _reader(file)
        if len(found) > MOST_FILES:
            raise RecordingError(f"{path}: holds more than {MOST_FILES} files; no saved answers do")
    return found


def _reader(file: Path) -> Any:
    def read(most: int) -> bytes:
        with file.open("rb") as stream:
            return stream.read(most)

    return read


def _in_zip(path: Path) -> Mapping[str, Any]:
    def reader(info: zipfile.ZipInfo) -> Any:
        def read(most: int) -> bytes:
            with zipfile.ZipFile(path) as archive, archive.open(info) as stream:
                return stream.read(most)

        return read

    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise RecordingError(f"{path}: holds more than {MOST_FILES} files; no saved answers do")
    return {info.filename: reader(info) for info in infos if info.filename.endswith(SUFFIX)}


def _parse(path: Path, name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        page = "is a web page, no JSON" if content.lstrip()[:1] == b"<" else f"is no JSON: {str(error)[:100]}"
        raise RecordingError(f"{path}: {name} {page}") from None
