"""What the README and the pages of docs/ show is true."""

import re
import subprocess

from sim.app.examples import contents
from sim.model.schema.study import loads
from sim.studies.sweeps.sweep_file import define
from tests.places import ROOT
from tests.processes import run_python

README = (ROOT / "README.md").read_text()
TEXT = README + "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
MAX_LINES = 120


def test_the_scenarios_of_the_readme_load():
    """Every YAML block that is no sweep is a scenario without a warning; the first compares three strategies, the other is an example."""
    scenarios = [block for block in BLOCKS if "\nscenario:" not in block]
    studies = [loads(block) for block in scenarios]

    assert [study.warnings for study in studies] == [(), ()]
    assert scenarios[1] == contents("kafka-rocksdb-s3")["kafka-rocksdb-s3.yaml"]
    assert len(studies[0].scenarios) == 3
    assert (
        studies[0].question
        == "How would this job checkpoint under aligned, unaligned and aligned-with-timeout barriers?"
    )


def test_make_run_prints_what_the_readme_shows(tmp_path):
    """Each value of its table, under the same heading."""
    scenario = re.search(r"^SCENARIO \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    printed = run_python("-m", "sim", "run", scenario, "--out", tmp_path / "out", check=True).stdout
    readme_rows, printed_rows = (table(text) for text in (README, printed))

    assert len(readme_rows) == 3
    assert readme_rows == [{name: row[name] for name in readme_rows[0]} for row in printed_rows]


def table(text):
    """The rows of the table of strategies, by heading.  The blocks of a wide table, one below the other, are joined."""
    found = {}
    for block in re.findall(r"^strategy .*(?:\n\S.*){3}", text, re.MULTILINE):
        header, *rows = (re.split(r" {2,}", line.strip()) for line in block.splitlines())
        for row in rows:
            found.setdefault(row[0], {}).update(zip(header, row, strict=True))
    return list(found.values())


def test_the_sweep_of_the_docs_can_be_run(tmp_path):
    """From the checkout's folder, as it stands there."""
    (block,) = [block for block in BLOCKS if "\nscenario:" in block]
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "sweep.yaml").write_text(block)
    definition = define(tmp_path / "sweep.yaml")

    assert (definition.warnings, len(definition.scenarios)) == ((), 12)
    assert definition.question.settings == ("checkpoint.interval",)


def test_the_makefile_keeps_to_posix():
    """It says so; functions of GNU make expand to nothing elsewhere."""
    makefile = (ROOT / "Makefile").read_text()

    assert ".POSIX:" in makefile
    assert re.findall(r"(?<!\$)\$[({][\w-]+\s[^)}]*", makefile) == []


def test_make_says_what_it_can_do():
    """Each target with a line about it."""
    listing = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()

    for target in targets:
        assert re.search(rf"^{target} +\S.{{10,}}", listing, re.MULTILINE), target
    assert "PY=python3" in listing


def test_the_targets_of_make_are_there():
    """Those that a page calls; `tests/test_docs.py` looks for files and folders."""
    targets = set(re.findall(r"(?:^ {4}|`)make (?:PY=\S+ )?([a-z-]+)", TEXT, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text()

    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_readme_is_read_in_a_minute():
    """A newcomer finds the first step; the rest is in docs/."""
    assert len(README.splitlines()) <= MAX_LINES
