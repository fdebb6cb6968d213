"""`python -m benchmarks.same`: a checkout beside this one, alike or not."""

import pytest

from benchmarks.same import ROOT
from sim.model.schema.study import load
from tests.processes import run_python

SCENARIO = "flip-147-drain-or-not"
LATER = """

def simulate(scenario):
    from dataclasses import replace

    result = __getattr__("simulate")(scenario)
    return replace(result, ended_ns=result.ended_ns + 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("change", ["", LATER], ids=["alike", "ends-later"])
def test_every_difference_is_named(tmp_path, change):
    """Only the end of the run differs: tables and journal are the same bytes."""
    (tmp_path / "sim").mkdir()
    for path in (ROOT / "sim").iterdir():
        if path.name not in {"__init__.py", "__pycache__"}:
            (tmp_path / "sim" / path.name).symlink_to(path)
    (tmp_path / "sim" / "__init__.py").write_text((ROOT / "sim" / "__init__.py").read_text() + change)

    options = ("--worlds", 0, "--scenarios", SCENARIO, "--no-recordings")
    ran = run_python("-m", "benchmarks.same", tmp_path, *options)
    lines = [line for line in ran.stdout.splitlines() if " here, " in line]
    count = len(load(ROOT / "scenarios" / f"{SCENARIO}.yaml").scenarios)
    different = [f"{SCENARIO}: {number} end" for number in range(count)] if change else []

    assert (bool(different), different) == (bool(ran.returncode), [line.rsplit(": ", 1)[0] for line in lines]), (
        ran.stderr
    )
