"""`ckptsim advise`: a job and its limits in, a setting out."""

import re

import pytest

from sim.sweep.advice import trials


@pytest.fixture
def quick(monkeypatch):
    """Trials of seconds instead of minutes."""
    monkeypatch.setattr(trials, "INTERVALS_NS", (2 * 10**9,))
    monkeypatch.setattr(trials, "SETTLED_NS", 10**9)
    monkeypatch.setattr(trials, "CHECKPOINTS", 2)
    monkeypatch.setattr(trials, "PROTOCOLS", (trials.PROTOCOLS[0], trials.PROTOCOLS[-1]))


@pytest.fixture
def set_today(tiny):
    """The tiny job with one setting, that of today."""
    text = re.sub(r"barriers: \[[^\]]*\]", "barriers: aligned", tiny.read_text())
    tiny.write_text(text)
    return tiny


def test_a_setting_and_what_to_paste(ckptsim, set_today, quick, tmp_path):
    """Everything within limits: the job stays as it is.  A second call has nothing to run."""
    words = ("advise", set_today, "--p99", "10 s", "--recovery", "1 min", "--replications", 2, "--jobs", 1, "--out", tmp_path / "out")
    done = ckptsim(*words)

    assert 0 == done.exit_code, done.stderr
    kept = r"It keeps the limits \(recovery at most 60 s, checkpoints at most 10 s\)"
    assert re.search(rf"Stay with aligned, every [0-9a-z ]+\. {kept}", done.stdout)
    assert "execution.checkpointing.unaligned.enabled: false" in done.stdout
    assert "UNKNOWN: how often does the job fail?" in done.stdout
    before = sorted((tmp_path / "out" / "cells").iterdir())
    assert done.stdout == ckptsim(*words).stdout
    assert before == sorted((tmp_path / "out" / "cells").iterdir())


def test_no_setting_will_do(ckptsim, set_today, quick):
    done = ckptsim("advise", set_today, "--p99", "1 us", "--mtbf", "1 h", "--replications", 1, "--jobs", 1)

    assert 1 == done.exit_code
    assert "No setting that was tried keeps the limits (checkpoints at most 0 ms)" in done.stdout
    assert "UNKNOWN" not in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--p99", "60"], 2, "--p99: a duration needs a unit"),
        (["--loss", "3"], 2, "--loss: "),
        ([], 3, "lists several values of checkpoint.barriers: give the one that is set today"),
    ],
)
def test_what_cannot_be_asked(ckptsim, tiny, words, code, told):
    done = ckptsim("advise", tiny, *words)

    assert code == done.exit_code
    assert told in done.stderr
