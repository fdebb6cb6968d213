"""What a folder keeps beside its rows for a report: question, verdict, texts and tables, and the command that makes it again.

It says when and by what results were made: a result that is made again unchanged keeps its date.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.analysis.section import TextTable
from sim.runtime.run.manifest import code_version
from sim.verbs.command_lines import command_line
from sim.whole_file import replace_text

if TYPE_CHECKING:
    from sim.report.page import Page


def keep_answer(
    folder: Path, name: str, *, title: str, question: str, verdict: str, parts: Sequence[str | TextTable], findings: Sequence[str],
    assumptions: Sequence[str], command: str, **extra: Any,
) -> None:  # fmt: skip
    """Write `folder`/`name`.  `findings`: lines about the job, as they were told.  `extra`: what its figures need."""
    kept = {
        "title": title,
        "question": question,
        "verdict": verdict,
        "parts": [part if isinstance(part, str) else part._asdict() for part in parts],
        "findings": list(findings),
        "assumptions": list(assumptions),
        **extra,
        "command": f"{command}\n{command_line('report', [folder], {})} -o report.html",
    }
    replace_text(folder / name, json.dumps(with_provenance(kept, folder / name), indent=1, allow_nan=False) + "\n")


def kept_job(folder: Path, file: Path, changes: Sequence[str]) -> dict[str, Any]:
    """The scenario behind the answer in `folder`, for `diff`: text, file as seen from there, changes.  Empty: it has no file."""
    if not file.is_file():
        return {}
    return {"text": file.read_text(encoding="utf-8"), "file": Path(os.path.relpath(file, folder)).as_posix(), "changes": list(changes)}


def write_page(page: Page, file: Path) -> None:
    """One HTML file that needs no network."""
    from sim.report.page import html  # here: what is kept without a page needs no charts

    replace_text(file, html(page))


def now() -> str:
    """``2026-11-23 07:15 UTC``.  SOURCE_DATE_EPOCH (seconds) stands for the clock: https://reproducible-builds.org/specs/source-date-epoch/."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def with_provenance(kept: Mapping[str, Any], file: Path | None = None) -> dict[str, Any]:
    """The same with version and date.  `file`: where it was kept before; if nothing else has changed, its date stays."""
    new = {**kept, "version": f"{_release()} (code {code_version()})", "date": now()}
    old = _read(file)
    return {**new, "date": old["date"]} if old and json.loads(json.dumps(new | {"date": ""})) == old | {"date": ""} else new


def _release() -> str:
    try:
        return version("ckptsim")
    except PackageNotFoundError:
        return "of a checkout"


def _read(file: Path | None) -> dict[str, Any]:
    """The JSON of a file; empty: there is none, or it cannot be read."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "date" in found else {}
