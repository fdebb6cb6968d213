"""A small share of the damaged inputs that `python -m tests.fuzz` tries by the thousand, and the tool itself."""

import pytest

from tests.fuzz.__main__ import finding
from tests.fuzz.child import Ended
from tests.fuzz.inputs import KINDS, make
from tests.processes import run_python

FINE = Ended(0, "fine", 1.0, 200.0)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_seed_is_a_case(kind, tmp_path):
    """The same seed writes the same files and the same command; another seed writes others."""
    folders = [tmp_path / name for name in ("first", "again", "other")]
    for folder in folders:
        folder.mkdir()
    commands = [make(kind, seed, folder) for seed, folder in zip((5, 5, 6), folders, strict=True)]
    contents = [[path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()] for folder in folders]

    assert (commands[0], contents[0]) == (commands[1], contents[1])
    assert (commands[0], contents[0]) != (commands[2], contents[2])


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (FINE, ""),
        (FINE._replace(code=3, output="job.yaml:3:1: job: required key is missing"), ""),
        (FINE._replace(code=130), ""),
        (FINE._replace(output="Traceback (most recent call last):\n  ...\nKeyError: 3"), "a traceback: KeyError: 3"),
        (FINE._replace(code=70), "exit code 70"),
        (FINE._replace(code=-11), "exit code -11"),
        (FINE._replace(code=3, output=" \n"), "exit code 3 without a message"),
        (FINE._replace(cpu_s=31.0), "31 s of processor time"),
        (FINE._replace(peak_mb=2048.0), "2048 MB of memory"),
        (FINE._replace(output="job '\x1b[2J'"), "control characters in what is printed"),
    ],
)
def test_what_counts_as_a_finding(ended, expected):
    assert expected == finding(ended)


@pytest.mark.slow
def test_damaged_inputs_end_with_a_message(tmp_path):
    """In a process of its own, for it forks: ninety cases of all kinds, always the same."""
    done = run_python("-m", "tests.fuzz", "--count", 90, "--first", 7000, "--folder", tmp_path, timeout=600)

    assert "0 findings in 90 cases" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
