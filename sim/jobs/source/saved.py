"""Save snapshots to folders, and read them from folders, ZIP files, archives of a history server, and single answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic_core import from_json

from sim.jobs.source.recorded_job import MAX_RECORDING_BYTES as FILES_LARGEST_BYTES
from sim.jobs.source.recorded_job import Budget, BudgetError, RecordingError, open_uncompressed
from sim.jobs.source.rest_answers import (
    HOW_TO_SAVE,
    RestSnapshot,
    choose,
    escapes_folder,
    filter_metrics,
    filter_response,
    is_path,
    job_ids_in,
)
from sim.model.files import is_abandoned, partial_of, remove_partials, replace_text
from sim.model.text import masked_text, one_line

# ---- A snapshot as files: a folder or zip of JSON that can be shared.  The file name of an answer is its REST path:
#
#     jobs/<id>/checkpoints/config.json                  the answer to /jobs/<id>/checkpoints/config
#     samples/<epoch ms>/jobs/<id>/vertices/<id>/metrics.json    answers to repeated requests
#     source.json                                        the address, and the requests without an answer
#
# Only `jobs/...` is required, so that answers saved by hand can be read, too.  Other files, links, pipes and hidden files
# are ignored.
#
# An archive of Flink's history server is one file per job that ended, `{"archive": [{"path": ..., "json": ...}]}`.  The
# JobManager writes it into `jobmanager.archive.fs.dir` (FsJobArchivist).  The `json` of an entry is the answer of its
# path as text.  It holds no metrics.

SOURCE, SAMPLES, SUFFIX = "source.json", "samples", ".json"
MAX_FILES = 200_000
Opener = Callable[[], IO[bytes]]
"""A function that opens a file for reading."""


def save(snapshot: RestSnapshot, folder: Path) -> None:
    """Save what is read of a snapshot atomically to a new or empty folder.  Answers that are not Flink's are missing in it.

    Raises `OSError` if the folder cannot be written, `FileExistsError` if it contains other files, and `RecordingError`
    if a path is not one of Flink's.
    """
    if folder.exists() and not is_free(folder):
        raise FileExistsError(17, "is not empty; --save writes into a new folder", str(folder))
    missing = dict(snapshot.missing)
    files: dict[str, Any] = {}
    for path, answer in snapshot.answers.items():
        name = _file(path)
        try:
            if (part := filter_response(path, answer, snapshot.source)) is not None:
                files[name] = part
        except RecordingError as error:
            missing[path] = one_line(masked_text(str(error)), 200)
    for time_ms, sample in snapshot.samples.items():
        files |= {
            f"{SAMPLES}/{int(time_ms)}/{_file(path)}": filter_metrics(metrics) for path, metrics in sample.items()
        }
    files[SOURCE] = {"source": snapshot.source, "job": snapshot.job, "missing": missing}
    partial = partial_of(folder / "answers")
    try:
        for name, answer in files.items():
            file = partial / name
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_text(file, json.dumps(answer, indent=1) + "\n")
        _move(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _move(partial: Path, folder: Path) -> None:
    """Move all parts or, on an error, none: only some of them would look like answers that were saved by hand."""
    parts = sorted(partial.iterdir(), key=lambda part: part.name == SOURCE)
    try:
        for part in parts:
            part.rename(folder / part.name)
    except BaseException:
        for part in parts:
            if not part.exists():  # back into the folder that the caller removes
                (folder / part.name).rename(part)
        raise


def is_free(folder: Path) -> bool:
    """Return whether the folder contains nothing except partial files of killed processes."""
    remove_partials(folder)
    return all(is_abandoned(path) for path in folder.iterdir())


def is_saved(path: Path) -> bool:
    """Return whether a path is a folder or a ZIP file, judged by its content."""
    return path.is_dir() or zipfile.is_zipfile(path)


def read_saved(path: Path, job: str | None = None) -> RestSnapshot:
    """Read a saved snapshot.  Raises `RecordingError` if answers are missing or damaged, or the job is ambiguous."""
    answers: dict[str, Any] = {}
    samples: dict[int, dict[str, Any]] = {}
    source: Any = None
    pages: dict[str, str] = {}
    budget = Budget()
    for name, content in _files(path):
        if content.lstrip()[:1] == b"<":  # what a proxy answered for Flink
            pages["/" + name.removesuffix(SUFFIX)] = "a web page was saved for it"
            continue
        answer = _parse(path, name, content, budget)
        steps = name.removesuffix(SUFFIX).split("/")
        if name == SOURCE:
            source = answer
        elif steps[0] == SAMPLES:
            samples.setdefault(int(steps[1]), {})["/" + "/".join(steps[2:])] = answer
        else:
            answers["/" + "/".join(steps)] = answer
    metadata = source if isinstance(source, dict) else {}
    prefix = job or (metadata["job"] if isinstance(metadata.get("job"), str) else None)
    missing = metadata.get("missing")
    missing = pages | ({str(key): str(why) for key, why in missing.items()} if isinstance(missing, dict) else {})
    job_id = choose(job_ids_in(answers), prefix, str(path))
    return RestSnapshot(str(metadata.get("source", path.name)), job_id, answers, dict(sorted(samples.items())), missing)


def _file(path: str) -> str:
    """Return the file of a path.  It is always below the folder, even for malicious ids."""
    if not is_path(path):
        raise RecordingError(f"{one_line(path)} is not a path of Flink's REST API: not saved")
    return path.removeprefix("/") + SUFFIX


def is_answer(name: str) -> bool:
    """Return whether a file of that name belongs to a saved snapshot."""
    path = "/" + name.removesuffix(SUFFIX)
    first, _, rest = path.removeprefix(f"/{SAMPLES}/").partition("/")
    if path.startswith(f"/{SAMPLES}/"):
        return first.isascii() and first.isdecimal() and len(first) <= 16 and is_path(f"/{rest}")
    return is_path(path)


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (name relative to the folder that contains `jobs`, content) of each file of the snapshot."""
    try:
        if path.is_dir():
            yield from _saved_answers(path, _in_folder(path))
        else:
            with zipfile.ZipFile(path) as archive:
                yield from _saved_answers(path, _in_zip(path, archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        # RuntimeError: encrypted
        raise RecordingError(f"{path}: the zip is damaged or encrypted ({error})") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror or error})") from None


def _saved_answers(path: Path, openers: Mapping[str, Opener]) -> Iterator[tuple[str, bytes]]:
    names = sorted(openers)
    roots = sorted(
        {name[: name.index("jobs/")] for name in names if name.startswith("jobs/") or "/jobs/" in name}, key=len
    )
    if not roots:
        raise RecordingError(f"{path}: holds no saved answers of Flink's REST API: no file jobs/ID.json; {HOW_TO_SAVE}")
    remaining_bytes = FILES_LARGEST_BYTES
    for name in names:
        if name.startswith(roots[0]) and is_answer(name.removeprefix(roots[0])):
            with openers[name]() as file:
                content = file.read(remaining_bytes + 1)
            remaining_bytes -= len(content)
            if remaining_bytes < 0:
                raise RecordingError(f"{path}: holds more than {FILES_LARGEST_BYTES} bytes; no saved answers do")
            yield name.removeprefix(roots[0]), content


def _in_folder(path: Path) -> Mapping[str, Opener]:
    """Return regular files only: a link may lead out of the folder, a pipe may block the reader."""
    openers: dict[str, Opener] = {}
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            file = Path(folder) / name
            if name.endswith(SUFFIX) and file.is_file() and not file.is_symlink():
                openers[file.relative_to(path).as_posix()] = partial(open, file, "rb")  # type: ignore[assignment]
        _check_number(path, openers)
    return openers


def _in_zip(path: Path, archive: zipfile.ZipFile) -> Mapping[str, Opener]:
    infos = archive.infolist()
    _check_number(path, infos)
    if climbing := next((info.filename for info in infos if escapes_folder(info.filename)), None):
        raise RecordingError(f"{path}: holds a file whose name leads elsewhere: {one_line(climbing)}")
    return {info.filename: partial(archive.open, info) for info in infos if info.filename.endswith(SUFFIX)}


def _check_number(path: Path, files: Sized) -> None:
    if len(files) > MAX_FILES:
        raise RecordingError(f"{path}: holds more than {MAX_FILES} files; no saved answers do")


def _parse(path: Path, name: str, content: bytes, budget: Budget) -> Any:
    try:
        return budget.parse(content, name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {one_line(name, 120)} {error}") from None
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path}: {one_line(name, 120)} is not JSON: {one_line(error, 100)}") from None


def is_archive(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("archive"), list)


def read_archive(document: Any, path: Path, job: str | None = None) -> RestSnapshot:
    """Read an archive of a history server.  Raises `RecordingError` if it is damaged, or the job is ambiguous."""
    answers: dict[str, Any] = {}
    budget = Budget()
    for number, entry in enumerate(document["archive"]):
        name = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.startswith("/") or "json" not in entry:
            raise RecordingError(f"{path}: entry {number + 1} of the archive has no path and json")
        if escapes_folder(name[1:]):
            raise RecordingError(
                f"{path}: entry {number + 1} of the archive has a path that leads elsewhere: {one_line(name)}"
            )
        if not is_path(name.rstrip("/")):
            continue  # not the path of a request that is read
        text = entry["json"]
        is_text = isinstance(text, str)
        answers[name.rstrip("/")] = _parse(path, f"{name} of the archive", text.encode(), budget) if is_text else text
    return RestSnapshot(path.name, choose(job_ids_in(answers), job, str(path)), answers)


# ---- A single answer of Flink's REST API, as users paste it: with a shell prompt or a log prefix, or truncated.

MAX_RECORDING_BYTES = 50_000_000
_KINDS = (
    ("/jobs/JOB/checkpoints", {"counts", "history"}),
    ("/jobs/JOB/checkpoints/config", {"interval", "timeout", "mode"}),
    ("/jobs/JOB/checkpoints/details/N/subtasks/VERTEX", {"id", "status", "subtasks"}),
    ("/jobs/JOB/checkpoints/details/N", {"id", "status", "trigger_timestamp"}),
    ("/jobs/JOB/exceptions", {"exceptionHistory"}),
    ("/jobs/JOB/exceptions", {"root-exception", "all-exceptions"}),
    ("/jobs/JOB", {"jid", "vertices"}),
)
"""(path of the request, keys of its answer), the most specific first."""
_WEB_UI = re.compile(r"(?i)End to End Duration|Latest Acknowledgement")
_BEGIN = re.compile(r"\{\s*\"")
_MAX_BEGINNINGS = 50


class LoneAnswer(NamedTuple):
    """A single answer of the REST API, and the request that it answers."""

    name: str  # of the file
    path: str  # path of the request, with JOB, N and VERTEX in place of ids
    document: dict[str, Any]
    cut: str = ""  # where it is truncated, as text; "" if it is complete


def read_lone_answer(path: Path) -> LoneAnswer | None:
    """Read a single answer, or return None if the file contains something else.

    Raises `RecordingError` if it cannot be read, or is text copied from Flink's web UI.
    """
    if path.is_dir() or not path.exists():
        return None
    with open_uncompressed(path) as file:
        content = file.read(MAX_RECORDING_BYTES + 1)
    if len(content) > MAX_RECORDING_BYTES or b"\0" in content[:1000]:
        return None
    try:
        Budget().check(content, path.name)
    except BudgetError as error:
        raise RecordingError(f"{path}: {error}") from None
    text = content.decode("utf-8", "replace")
    at, is_first = 0, True
    for match in islice(_BEGIN.finditer(text), _MAX_BEGINNINGS):
        if match.start() < at:
            continue  # part of the document before
        document, at, cut = _document(text, match.start())
        kind = next((kind for kind, keys in _KINDS if isinstance(document, dict) and keys <= set(document)), None)
        if kind is not None:
            more = "followed by more JSON" if not cut and _BEGIN.search(text, at) else cut
            return LoneAnswer(path.name, kind, document, more)
        if is_first and not text[: match.start()].strip():
            return None  # the whole file is a document of another kind
        is_first = False
    if _WEB_UI.search(text) and "{" not in text:
        raise RecordingError(
            f"{path.name}: is text of Flink's web UI, which rounds: save what it shows by "
            "curl -s http://HOST:8081/jobs/JOB/checkpoints > checkpoints.json"
        )
    return None


def _document(text: str, begin: int) -> tuple[Any, int, str]:
    """Return (document that begins at `begin`, its end, where it is truncated).

    The document is None if there is none, or if it is damaged.  The last element is "" unless the text is truncated.
    """
    try:
        return *json.JSONDecoder().raw_decode(text, begin), ""
    except (ValueError, RecursionError) as error:
        at = getattr(error, "pos", begin)
    if len(text.rstrip()) - at > _MAX_TOKEN:
        return None, begin, ""  # damaged, not truncated
    where = f"cut off at character {len(text):,} (line {text.count(chr(10)) + 1:,})"
    end = max(text.rfind(sign, begin, at) for sign in ",}]")  # a number behind that may be incomplete
    try:
        return from_json(text[begin : end + 1], allow_partial=True), len(text), where
    except ValueError:
        return None, len(text), where


_MAX_TOKEN = 20_000
"""Characters; a truncated stack trace is one token."""
