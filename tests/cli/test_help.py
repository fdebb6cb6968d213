"""Help answers in a blink and names every verb."""

import json
import subprocess
import sys

import pytest

HEAVY = ("pandas", "numpy", "numba", "pyarrow", "simpy", "matplotlib", "pyspark", "ruamel")  # typer itself brings pydantic


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["sweep", "--help"], ["import", "--help"], ["validate", "--help"], ["schema", "--help"]]
)
def test_help_imports_nothing_heavy(arguments):
    """A second of imports for a page of text is a second too much."""
    program = (
        f"import sys\nsys.argv = ['ckptsim', *{arguments!r}]\nfrom sim.cli import main\n"
        f"try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"sys.exit(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "" == done.stderr.strip()
    assert "Usage: ckptsim" in done.stdout


def test_no_words_is_help(ckptsim):
    """Usage, and the code of a usage error."""
    done = ckptsim()

    assert 2 == done.exit_code
    assert all(verb in done.output for verb in ("run", "sweep", "import", "validate", "schema"))


def test_an_unknown_verb_is_usage(ckptsim):
    assert 2 == ckptsim("runn").exit_code


def test_schemas_of_scenarios_and_sweeps(ckptsim):
    """Two documents, two schemas; one at a time."""
    titles = [json.loads(ckptsim("schema", *options).output)["title"] for options in ((), ("--sweep",))]

    assert ["ckptsim scenario", "ckptsim sweep"] == titles
    assert 2 == ckptsim("schema", "--sweep", "--results").exit_code


def test_result_tables_are_described(ckptsim):
    """Those of a run, and those of a sweep."""
    titles = json.loads(ckptsim("schema", "--results", "--json").output)

    assert {"name": "downtime_ms", "unit": "ms", "meaning": "failure -> all tasks run again, median over restarts"} in titles["results"]
    assert {"name", "unit", "meaning"} == set(titles["checkpoints"][0])
    assert "results.parquet of a sweep" in ckptsim("schema", "--results").output
