"""What the README shows is true."""

import re
from pathlib import Path

from sim.scenario import loads

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_the_scenarios_of_the_readme_load():
    """Every YAML block is a scenario without a warning, and the first compares three strategies."""
    studies = [loads(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]

    assert [()] == [study.warnings for study in studies]
    assert len(studies[0].scenarios) == 3
    assert studies[0].question == "How would this job checkpoint under aligned, unaligned and aligned-with-timeout barriers?"


def test_what_the_readme_names_is_there():
    """Folders, files and make's targets."""
    paths = [name for name in re.findall(r"`([\w./-]+/[\w./-]*)`", TEXT) if not name.startswith("/")]
    targets = set(re.findall(r"make (?:PY=\S+ )?([a-z-]+)", TEXT)) - {"are"}
    makefile = (ROOT / "Makefile").read_text()

    assert [] == [path for path in paths if not (ROOT / path).exists()]
    assert [] == [target for target in targets if f"\n{target}:" not in makefile]
