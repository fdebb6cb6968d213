"""Help answers in a blink and names every verb."""

import json
import os
import re

import pytest

import sim
from sim.app.cli import app
from tests.processes import run_python

# typer itself brings pydantic
HEAVY = ("pandas", "numpy", "numba", "pyarrow", "simpy", "matplotlib", "pyspark", "ruamel")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["sweep", "--help"],
        ["import", "--help"],
        ["validate", "--help"],
        ["schema", "--help"],
    ],
)
def test_help_imports_nothing_heavy(arguments):
    """A second of imports for a page of text is a second too much."""
    program = (
        f"import sys\nsys.argv = ['ckptsim', *{arguments!r}]\nfrom sim.app.cli import main\n"
        f"try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"sys.exit(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )

    done = run_python("-c", program)

    assert done.stderr.strip() == ""
    assert "Usage: ckptsim" in done.stdout


def test_the_version_is_told(ckptsim):
    assert f"ckptsim {sim.__version__}\n" == ckptsim("--version").stdout


def test_no_words_is_help(ckptsim):
    """Usage, and the code of a usage error."""
    done = ckptsim()

    assert done.exit_code == 2
    assert all(verb in done.output for verb in ("run", "sweep", "import", "validate", "schema"))


def test_the_overview_fits_a_screen(ckptsim):
    """24 lines of 80 columns: every verb in a line with its task; completion and exit codes are named."""
    text = ckptsim("--help").stdout
    verbs = [verb.name or verb.callback.__name__ for verb in (*app.registered_commands, *app.registered_groups)]

    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) < 80
    assert "..." not in text.partition("\n\n")[2]
    assert [verb for verb in verbs if not re.search(rf"^(\w[\w ]+|) {{2,}}{verb} ", text, re.MULTILINE)] == []
    assert all(
        part in text
        for part in ("Get started  init", "My own job   import", "--install-completion", "Exit codes: 0 success")
    )


@pytest.mark.parametrize("verb", ["validate", "explain", "traces read"])
def test_help_shows_no_python_types(ckptsim, verb):
    """Typer prints ``<list[Path]>`` for an argument, and ``<bool>`` for --help."""
    text = ckptsim(f"{verb} --help").stdout

    assert "--help" in text
    assert not re.search(r"<\w+[\[>]", text)


@pytest.mark.parametrize("command", ["runs no-folder", "validate no-file.zip"])
def test_a_path_that_does_not_exist_is_invalid_input(ckptsim, command):
    done = ckptsim(command)

    assert done.exit_code == 3
    assert re.search(r"no such folder|No such file", done.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_verbs(shell):
    """The script that typer writes for a shell calls the command to be told what may follow."""
    environment = {**os.environ, "_CKPTSIM_COMPLETE": f"source_{shell}"}
    main = ("-c", "from sim.app.cli import app; app(prog_name='ckptsim')")
    script = run_python(*main, env=environment).stdout
    request = {**os.environ, "_CKPTSIM_COMPLETE": "complete_bash", "COMP_WORDS": "ckptsim kn", "COMP_CWORD": "1"}
    offered = run_python(*main, env=request).stdout.split()

    assert "_CKPTSIM_COMPLETE=complete_" + shell in script
    assert offered == ["known-issues"]


def test_schemas_of_scenarios_and_sweeps(ckptsim):
    """Two documents, two schemas; one at a time."""
    titles = [json.loads(ckptsim(command).output)["title"] for command in ("schema", "schema --sweep")]

    assert titles == ["ckptsim scenario", "ckptsim sweep"]
    assert ckptsim("schema --sweep --results").exit_code == 2


def test_result_tables_are_described(ckptsim):
    """Those of a run, and those of a sweep."""
    titles = json.loads(ckptsim("schema --results --json").output)

    meaning = "failure -> all tasks run again, median; of restarts caused by a failure"
    assert {"name": "downtime_ms", "unit": "ms", "meaning": meaning} in titles["results"]
    assert {"name", "unit", "meaning"} == set(titles["checkpoints"][0])
    assert {"subtasks", "tasks", "series", "commits", "recoveries", "runs"} < set(titles)
    assert "results.parquet of a sweep" in ckptsim("schema --results").output
