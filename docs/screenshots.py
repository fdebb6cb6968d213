"""Screenshots of reports for the page about them: `python -m docs.screenshots` takes them again, with Chromium.

Everything is made anew in a temporary folder: a run, a sweep, an import of recorded answers, an advice about it, and a
real checkpoint.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from docs.pictures import FOLDER

if TYPE_CHECKING:
    from tests.browser import Browser

ROOT = Path(__file__).parent.parent
ANSWERS, REAL = ROOT / "tests/data/rest/pressed.zip", ROOT / "tests/data/planted-afresh/disk.zip"
COMMANDS = (
    ["init", "first"],
    ["run", "first.yaml", "--out", "run"],
    ["report", "run", "-o", "run.html"],
    ["init", "sweep"],
    ["sweep", "sweep.yaml", "--out", "sweep"],
    ["report", "sweep", "-o", "sweep.html"],
    ["import", str(ANSWERS), "-o", "job.yaml"],
    ["report", "job.yaml", "-o", "import.html"],
    [
        "advise",
        "job.yaml",
        "--p99",
        "1 s",
        "--recovery",
        "60 s",
        "--out",
        "advice",
        "--budget",
        "30 s",
    ],
    ["report", "advice", "-o", "advice.html"],
    ["report", str(REAL), "-o", "checkpoint.html"],
)
SHOTS = {
    "run": (940, 1200),
    "sweep": (0, 1000),
    "import": (3360, 830),
    "advice": (0, 1150),
    "checkpoint": (940, 1250),
}
"""The report -> from which pixel on, and how many, at 1280 pixels."""
NARROW = {"run": 1300, "checkpoint": 1300}
"""The report -> how many pixels from the top at 390."""
COLOURS = 256


def main() -> int:
    from tests.browser import browser

    with _reports() as folder, browser() as opened:
        for name, (top, height) in SHOTS.items():
            _take(opened, folder / f"{name}.html", f"report-{name}", 1280, top, height, dark=name == "sweep")
        for name, height in NARROW.items():
            _take(opened, folder / f"{name}.html", f"report-{name}-narrow", 390, 0, height)
        _take(opened, folder / "checkpoint.html", "report-checkpoint-printed", 800, 0, 1100, printed=True)
    return 0


@contextmanager
def _reports() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        for command in COMMANDS:
            program = [sys.executable, "-m", "sim", *command]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            subprocess.run(program, cwd=temporary, check=True, capture_output=True, env=environment)
        yield Path(temporary)


def _take(
    opened: Browser,
    page: Path,
    name: str,
    width: int,
    top: int,
    height: int,
    *,
    dark: bool = False,
    printed: bool = False,
) -> None:
    """Part of a page as a picture of few colours.  RuntimeError: something is wrong with the page, see tests/browser.py."""
    from PIL import Image

    seen = page.with_suffix(".png")
    sight = opened.look(page, width=width, dark=dark, printed=printed, picture=seen)
    if any(
        (sight.wide, sight.cut, sight.overlaps, sight.faint, sight.small, sight.hidden, sight.console, sight.requests)
    ):
        raise RuntimeError(f"{name}: {sight}")
    whole = Image.open(BytesIO(seen.read_bytes())).convert("RGB")
    margin = 140 if width == 1280 else 0
    part = whole.crop((margin, top, width - margin, min(top + height, whole.height)))
    part.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        FOLDER / f"{name}.png", optimize=True
    )


if __name__ == "__main__":
    sys.exit(main())
