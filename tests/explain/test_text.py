"""The waterfall fits 80 columns, and its numbers are those of the record."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.explain.causes import SlowPlace, _slowest_place, slow_file
from sim.explain.close_up import CloseUp, rerun_with_observers
from sim.explain.explanation import (
    WIDTH,
    Account,
    AccountLine,
    NoCheckpointError,
    WhatIf,
    _default_checkpoints,
    account,
    accounts,
    duration,
    record,
    sentence,
    text,
    what_if,
    with_checkpoints,
)
from sim.results.critical_path import PathKind
from sim.results.side_by_side import singles
from tests.results.analysis.runs_by_hand import Made
from tests.scenarios import read_scenario
from tests.worlds.generator import FOLDER
from tests.worlds.generator import text as world

HOSTILE = "x" * 70


def explained(vertex="sink"):
    job = f"{{source: {{source: {{rate: unlimited, record: 1 kB}}}}, {vertex}: {{input: {{source: hash}}, service: 2 ms}}}}"
    run = rerun_with_observers(
        read_scenario(
            f"version: 1\njob: {job}\ncheckpoint: {{interval: 2 s}}\ncluster: {{placement: isolated}}\nrun: {{duration: 8 s}}"
        )
    )
    return accounts("aligned", run)[-1]


def test_every_line_fits():
    """Whatever names others chose."""
    found = explained(vertex=HOSTILE)

    assert [line for line in text(found).splitlines() if len(line) > WIDTH] == []


def test_a_checkpoint_under_way_is_explained_up_to_the_end_of_the_run():
    job = "{source: {source: {rate: 10/s, record: 1 kB}}, sink: {input: {source: hash}, snapshot: {async: 60 s}}}"
    (instance,) = rerun_with_observers(
        read_scenario(f"version: 1\njob: {job}\ncheckpoint: {{interval: 1 s}}\nrun: {{duration: 3 s}}")
    ).instances

    found = account("it", 0, instance, 1)

    assert sentence(found) == (
        f"Checkpoint 1 (it) has been under way for {duration(found.duration_ns)}. 100 % of it, {duration(found.longest.duration_ns)}, "
        "is async work of sink[0]: the operator's own work in the asynchronous part."
    )
    assert found.trigger_ns + found.duration_ns == 3_000_000_000


def test_a_checkpoint_of_an_instant_took_no_time():
    """Its record has what follows the last acknowledgement."""
    job = "{source: {source: {rate: 10/s, record: 1 kB}}}"
    at_once = "storage: {metadata-latency: 5 ms}\noverheads: {trigger: 0 s, acknowledge: 0 s}"
    document = f"version: 1\njob: {job}\ncheckpoint: {{interval: 1 s}}\n{at_once}\nrun: {{duration: 3 s}}"
    (instance,) = rerun_with_observers(read_scenario(document)).instances
    found = account("it", 0, instance, 1)

    assert sentence(found) == "Checkpoint 1 (it) took 0 ms: all tasks acknowledged it in the instant of its trigger."
    assert sentence(found) == " ".join(text(found).split())
    assert [part["begin_ns"] for part in record(found)["after"]] == [0]


@pytest.mark.parametrize("seed", range(700, 704))
def test_checkpoints_of_any_world_are_explained(seed):
    """Parts lie end to end, each has a cause, and the page fits."""
    run = rerun_with_observers(read_scenario(world(seed), folder=FOLDER))
    for found in accounts("it", run):
        assert [0, *(line.end_ns for line in found.lines)] == [
            *(line.begin_ns for line in found.lines),
            found.duration_ns,
        ]
        assert all(line.cause and line.place for line in found.lines)
        assert max(map(len, text(found).splitlines())) <= WIDTH


JOB = """
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms, snapshot: {pre-barrier: 5 ms, sync: 6 ms, async: 7 ms}, commit: {time: 9 ms},
         state: {size: 4 MB, backend: rocksdb, serialize: 300 MB/s, lsm: {freeze: 2 ms, upload: 3 ms}}}
checkpoint: {interval: 1 s, max-concurrent: 3, savepoint-rate: 10 MB/s}
storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}
run: {duration: 12 s}
"""
CHANGES = {
    "with unaligned barriers": {PathKind.QUEUE, PathKind.TIMEOUT, PathKind.ALIGNMENT},
    "with files written in the asynchronous part": {PathKind.FLUSH},
    "without the work before the barrier": {PathKind.PRE_BARRIER},
    "without the synchronous part": {PathKind.SYNC},
    "without the asynchronous work": {PathKind.ASYNC_QUEUE, PathKind.ASYNC_WORK},
    "with storage that takes no time": {PathKind.UPLOAD, PathKind.CHANNEL_STATE},
    "with a commit that takes no time": {PathKind.COMMIT},
}


@pytest.mark.parametrize("is_unaligned", [False, True])
def test_what_a_setting_would_spare(is_unaligned):
    """Barriers that overtake gain nothing by unaligned ones; messages and work of the JobManager have no setting."""
    found = {kind: change for kind in PathKind if (change := what_if(kind, 7, is_unaligned=is_unaligned))}
    expected = {kind: (name, 7) for name, kinds in CHANGES.items() for kind in kinds}

    assert {kind: pair for kind, pair in expected.items() if not is_unaligned or "unaligned" not in pair[0]} == found


@pytest.mark.parametrize(
    ("place", "name"),
    [("node 3 was slow", "without the slow node"), ("the stream was a slow one", "without the slow stream")],
)
def test_a_slow_place_costs_what_its_factor_says(place, name):
    """A twentieth of the bandwidth: without it 100 ms become 5 ms."""
    slow = SlowPlace(Fraction(20), place)

    assert (name, 95) == what_if(PathKind.UPLOAD, 100, is_unaligned=False, slow=slow)


def test_a_place_is_as_slow_as_at_its_slowest_moment(monkeypatch):
    """Nine moments from the beginning to the end of the file are looked at; of several places the first of the slowest is named."""
    seen = []

    def slowness(_slow, _seed, number):
        return SimpleNamespace(at=lambda at: (seen.append(at) or Fraction(number // 2 if at == 800 else 1), 0))

    monkeypatch.setattr("sim.explain.causes.slowness", slowness)
    file = SimpleNamespace(created_ns=0, durable_ns=800)

    assert (Fraction(3), "node 6 was slow") == _slowest_place(None, 1, {2, 7, 6, 3}, "node", file)
    assert [100 * i for i in range(9)] == sorted(set(seen))
    assert _slowest_place(None, 1, {2, 3}, "node", file) is None


STORAGE = "storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}"
PLACES = {
    "the stream": "{bandwidth: 100 MB/s, SLOW}",
    "node": "{dfs: {nodes: 4, bandwidth: 100 MB/s, replication: 2, SLOW}}",
    "prefix": "{object-store: {bandwidth: 100 MB/s, prefixes: 2, SLOW}}",
}


@pytest.mark.parametrize("title", PLACES)
@pytest.mark.parametrize("share", ["100 %", "0 %"])
def test_files_name_their_slow_place(title, share):
    """A factor of two is slow as well; a file within another one is as slow as that, and none on a disk is."""
    lasts = "" if title == "the stream" else ", lasts: 10 min"
    slow = f"slow: {{share: {share}, factor: 2{lasts}}}"
    document = JOB.replace(STORAGE, f"storage: {PLACES[title].replace('SLOW', slow)}").replace("12 s", "1500 ms")
    (instance,) = rerun_with_observers(read_scenario(document)).instances
    files = list(instance.context.storage.files)
    inside = SimpleNamespace(**{name: getattr(files[0], name) for name in ("name", "size_bytes", "host")}, disk=False)
    inside.inside, inside.created_ns, inside.durable_ns = 0, files[0].created_ns, files[0].durable_ns
    found = {slow_file(instance.context, file) for file in (*files, inside)}

    assert {(2, True) if share == "100 %" else None} == {
        place and (place.factor, place.place.startswith(title)) for place in found
    }
    assert slow_file(instance.context, SimpleNamespace(disk=True)) is None


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
            number=number,
            status=status,
            trigger_ns=at * 10**6,
            latest_ack_ns=end_ns,
            failed_ns=end_ns,
            savepoint_format="",
        )
    table = SimpleNamespace(run=SimpleNamespace(finds_warm_up=False, warmup_ns=warmup_ms * 10**6))
    instance = SimpleNamespace(context=SimpleNamespace(stats=stats))
    return CloseUp(SimpleNamespace(scenario=table, firsts=firsts), (instance,))


@pytest.mark.parametrize(
    ("rows", "firsts", "warmup_ms", "chosen"),
    [
        # the median and the slowest
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100), ("COMPLETED", 2, 200)], [], 0, [3, 1]),
        # of two in the middle that are alike the quicker, else the slower, as in the sentence of `run`
        ([("COMPLETED", 0, 101), ("COMPLETED", 1, 100)], [], 0, [2, 1]),
        ([("COMPLETED", 0, 400), ("COMPLETED", 1, 100), ("COMPLETED", 2, 300), ("COMPLETED", 3, 90)], [], 0, [3, 1]),
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100)], [], 0, [2, 1]),  # of two both
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

    assert [(0, number) for number in chosen] == list(
        _default_checkpoints(run_of(*rows, firsts=firsts, warmup_ms=warmup_ms))
    )


@pytest.mark.parametrize(
    ("durations_ms", "savepoints", "role"),
    [
        ((90, 100, 300, 400), (), "the slower of the middle two of 4"),
        ((90, 300, 301, 400), (), "the median of 4"),
        ((90, 300, 400, 500), (4,), "the median of 3"),  # a savepoint does not count, as in the table of `run`
    ],
)
def test_explain_and_run_name_the_same_checkpoint_in_the_middle(monkeypatch, durations_ms, savepoints, role):
    monkeypatch.setattr("sim.explain.explanation._first_uploads", lambda run: [])
    run, made = run_of(*(("COMPLETED", 1000 * k, ms) for k, ms in enumerate(durations_ms))), Made()
    for number, ms in enumerate(durations_ms, 1):
        run.instances[0].context.stats[number].savepoint_format = "canonical" if number in savepoints else ""
        if number not in savepoints:
            made.checkpoint(1000 * number, ms)

    middle = singles([made.load(busy=(0, 0, 0)).tables()]).median.duration_ms
    chosen = {durations_ms[number - 1]: role for (_, number), role in _default_checkpoints(run).items()}
    assert chosen[middle] == role


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
    effect = "With x: the rest of this path takes 950 ms of 1 s; another one may take longer."

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
