"""What a folder keeps beside its rows for a report: question, verdict, texts and tables, and the command that makes it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim.analysis.section import TextTable
from sim.verbs.command_lines import command_line
from sim.verbs.provenance import with_provenance
from sim.whole_file import replace_text


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
