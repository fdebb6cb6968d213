"""Which checkpoints are explained, and which changes are named."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.explain.close_up import CloseUp, rerun_with_observers
from sim.explain.explanation import (
    Account,
    AccountLine,
    NoCheckpointError,
    WhatIf,
    _typical,
    accounts,
    text,
    with_checkpoints,
)
from sim.results.critical_path import PathKind
from tests.scenarios import read_scenario

TEXT = """
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms, state: {size: 4 MB}, snapshot: {sync: 300 ms, probability: 40 %}}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s}
run: {duration: 12 s, warmup: 2 s}
"""


@pytest.fixture(scope="module")
def run():
    return rerun_with_observers(read_scenario(TEXT))


def test_a_first_upload_has_an_account_of_its_own():
    """Warm-up or not; it is neither the median nor the slowest."""
    text = TEXT.replace(
        "state: {size: 4 MB}", "state: {size: 40 MB, backend: rocksdb, update: 10 %, lsm: {level0-files: 40}}"
    )
    text = text.replace("{interval: 1 s}", "{interval: 1 s, incremental: true}")
    found = accounts("it", rerun_with_observers(read_scenario(text)))

    assert found[0].number == 1
    assert found[0].duration_ns > max(account.duration_ns for account in found[1:])
    assert 1 not in [account.number for account in found[1:]]


def test_without_checkpoints_there_is_nothing_to_explain():
    bare = rerun_with_observers(read_scenario(TEXT.replace("{interval: 1 s}", "{interval: 1 h}")))

    with pytest.raises(NoCheckpointError, match="run longer, or set an interval"):
        accounts("it", bare)


def run_of(*rows, firsts=(), warmup_ms=0):
    """A run whose checkpoints are (status, trigger [ms], duration [ms]), the first ones being uploads of everything."""
    stats = {}
    for number, (status, at, ms) in enumerate(rows, 1):
        end_ns = (at + ms) * 10**6
        stats[number] = SimpleNamespace(
            number=number, status=status, trigger_ns=at * 10**6, latest_ack_ns=end_ns, failed_ns=end_ns
        )
    table = SimpleNamespace(run=SimpleNamespace(finds_warm_up=False, warmup_ns=warmup_ms * 10**6))
    instance = SimpleNamespace(context=SimpleNamespace(stats=stats))
    return CloseUp(SimpleNamespace(scenario=table, firsts=firsts), (instance,))


@pytest.mark.parametrize(
    ("rows", "firsts", "warmup_ms", "chosen"),
    [
        # the median and the slowest
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100), ("COMPLETED", 2, 200)], [], 0, [3, 1]),
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100)], [], 0, [2, 1]),  # of two in the middle the quicker
        ([("COMPLETED", 0, 300)], [], 0, [1]),
        # a first upload comes first, and the others are after the warm-up
        ([("COMPLETED", 0, 900), ("COMPLETED", 5, 100), ("COMPLETED", 6, 90)], [1], 5, [1, 3, 2]),
        ([("COMPLETED", 0, 900)], [1], 0, [1]),
        ([("FAILED", 0, 5), ("FAILED", 1, 9), ("IN_PROGRESS", 3, 50)], [], 0, [2]),  # the last that failed
        # in progress for longest, even from before the end of the warm-up
        ([("IN_PROGRESS", 0, 50), ("IN_PROGRESS", 3, 50)], [], 2, [1]),
    ],
)
def test_the_checkpoints_that_are_chosen(monkeypatch, rows, firsts, warmup_ms, chosen):
    monkeypatch.setattr(
        "sim.explain.explanation._first_uploads", lambda run: [(0, number) for number in run.result.firsts]
    )

    assert [(0, number) for number in chosen] == list(_typical(run_of(*rows, firsts=firsts, warmup_ms=warmup_ms)))


def test_only_strategies_that_take_checkpoints_are_explained():
    """At intervals, or by an action."""
    on = read_scenario(TEXT)
    off = read_scenario(TEXT.replace("{interval: 1 s}", "{interval: off}"))
    saved = read_scenario(
        TEXT.replace("{interval: 1 s}", "{interval: off}") + "actions: [{savepoint: canonical, at: 1 s}]\n"
    )

    assert {"on": on, "saved": saved} == with_checkpoints({"off": off, "on": on, "saved": saved})
    assert with_checkpoints({"off": off}) == {}


@pytest.mark.parametrize(("saved_ms", "is_told"), [(50, True), (49, False)])
def test_changes_that_save_a_twentieth_are_told(saved_ms, is_told):
    """Parts of one change add up; an aborted checkpoint has none, and shorter parts have no note."""
    ends = [0, 49, 500, 1000]
    saved = [None, saved_ms - 20, 20]
    lines = tuple(
        AccountLine(
            PathKind.SYNC,
            begin * 10**6,
            end * 10**6,
            "sink[0]",
            f"it is slow until {end}",
            own and WhatIf("with x", own * 10**6),
        )
        for begin, end, own in zip(ends[:-1], ends[1:], saved, strict=True)
    )
    found = Account("it", 0, 7, "COMPLETED", "", "", 0, lines)
    effect = "With x: the rest of the path takes 950 ms of 1 s."

    assert ([WhatIf("with x", saved_ms * 10**6)] if is_told else []) == list(found.changes)
    assert is_told == (effect in " ".join(text(found).split()))
    assert "slow until 49" not in text(found)
    assert replace(found, status="FAILED").changes == ()


def test_the_text_says_why_a_checkpoint_is_explained(run):
    """Without an id that the user names."""
    median, slowest = (text(account) for account in accounts("it", run))
    named = text(accounts("it", run, 3)[0])

    assert median.startswith(f"Checkpoint {accounts('it', run)[0].number} (it), the median of 10, took")
    assert "the slowest of 10" in " ".join(slowest.split())
    assert named.startswith("Checkpoint 3 (it) took")
