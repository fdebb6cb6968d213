"""What predictions are worth, from this project's recordings: writes sim/jobs/evidence/envelope.json and the block of docs/truth.md.

`python -m benchmarks.lab.envelope [FOLDER...]`; without folders, `make envelope`, all recordings in tests/data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lab.envelope_build import block, document, envelope_text, judge, replaced
from sim.jobs.evidence.envelope import FILE
from sim.jobs.reading import read_any

__all__ = ["FOLDERS", "PAGE", "made", "main"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "truth.md"
FOLDERS = (ROOT / "tests" / "data" / "recordings", ROOT / "tests" / "data" / "held-out")


def made(folders: Sequence[Path] = FOLDERS) -> str:
    """The text of the file, from all recordings in the folders; two or three seconds each."""
    paths = sorted((path for folder in folders for path in folder.glob("*.json.gz")), key=lambda path: path.name)
    return envelope_text(document([judge(read_any(path)) for path in paths]))


def main(folders: Sequence[Path]) -> None:
    text = made(folders or FOLDERS)
    FILE.write_text(text, encoding="utf-8")
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), block(json.loads(text))), encoding="utf-8")


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
