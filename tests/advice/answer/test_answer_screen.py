"""The answer on one screen: twenty lines of eighty characters with the verdict above it."""

from dataclasses import replace

import pytest

from benchmarks.lab.backtest_verdicts import read_results
from sim.advice.answer import P50_ERROR_FACTOR, WIDTH, Text, lines_below, no_answer, overview
from sim.advice.cautions import cautions
from sim.advice.configuration import diff_flink_keys, patch
from sim.advice.levers import CHANGELOG, rank_levers
from sim.advice.settings import Change, protocols
from sim.advice.situation import FOLDER, QUEUE, UPLOAD
from sim.studies.sweeps.design import override
from tests.advice.levers.test_levers import JOB, situation
from tests.advice.made_up import MadeUp, searched
from tests.scenarios import read_scenario

LONG = "a-vertex-with-a-name-that-is-as-long-as-names-of-sql-jobs-are-today"
ABOVE = [Text("keeps", f"p99 of {LONG} " * 3), Text("keeps", "recovery"), Text("today", "upload", 4)]
BELOW = [
    *(Text("ask", f"{LONG}?", 4 - place) for place in range(2)),
    Text("caution", "of a catalogue", 1),
    Text("watch", "p50", 7),
    Text("back", "over"),
]
KEYS = [f"+ execution.checkpointing.some-quite-long-key-of-flink-{i}: 15 s" for i in range(9)]


def rocksdb():
    where = situation(JOB.replace("count", LONG), full=LONG, **{UPLOAD: 0.5, QUEUE: 0.5})
    return next(own[0] for lever, own in rank_levers(where) if lever.name == "RocksDB incremental")


@pytest.mark.parametrize(
    ("count", "labels"),
    [
        (15, "keeps keeps keeps today change change change change change change ask ask caution watch back"),
        (12, "keeps keeps keeps today change change change change ask ask watch back"),
        (11, "keeps keeps keeps today change change change change ask watch back"),
        (9, "keeps keeps keeps change change change change watch back"),
        (6, "keeps keeps keeps change change back"),
    ],
)
def test_what_fits_is_shown(count, labels):
    """The first text takes two lines.  Of equals the last goes first; limits, changes and when to take them back stay."""
    lines = overview(ABOVE, KEYS, BELOW, count).splitlines()
    shown = [line[:8].strip() for line in lines]
    changes = labels.split().count("change")

    assert [label or (shown[:i][::-1] and next(filter(None, shown[:i][::-1]))) for i, label in enumerate(shown)] == (
        labels.split()
    )
    assert max(map(len, lines)) <= WIDTH
    assert any(f"  ... {len(KEYS) - changes + 1} more lines: see advised.yaml" in line for line in lines)
    assert overview([], KEYS, [], 9).count("\n") == 8


@pytest.mark.parametrize(
    ("rank", "text", "lines"),
    [
        (4, "x" * 72, ["x" * 72]),
        (4, "x" * 40 + " " + "y" * 40, ["x" * 40 + "..."]),
        (7, "x" * 40 + " -> " + "y" * 40, ["x" * 40 + " ->", "y" * 40]),
        (7, " ".join(["x" * 40] * 3), ["x" * 40, "x" * 40 + "..."]),
    ],
)
def test_a_line_is_cut_between_words_and_a_comparison_takes_two(rank, text, lines):
    """A number that is cut is another number, and one that is left out is the advised one."""
    expected = "\n".join(f"{label:8}{line}" for label, line in zip(("today", ""), lines, strict=False))

    assert overview([Text("today", text, rank)], [], [], 2) == expected


def test_a_longer_verdict_leaves_fewer_lines():
    """Twenty with the verdict and an empty one."""
    assert [lines_below(text) for text in ("x" * 80, "x " * 41)] == [18, 17]


def test_what_nothing_keeps(job):
    """Long names are wrapped, and lines that are too many left out."""
    job.write_text(JOB.replace("count", LONG).replace("input: {source", "connector: iceberg-v1, input: {source"))
    found = searched(job, MadeUp({}), checkpoint_ms=1000)
    lines = no_answer(
        found, 14, [f"With storage 2 times as fast {LONG} would keep the limits."], ""
    ).screen.splitlines()

    assert [line[:8].strip() for line in lines if line[:8].strip()] == ["closest", "✗ over", "fits", "caution"]
    assert max(map(len, lines)) <= WIDTH
    assert len(no_answer(found, 2, [LONG], "").screen.splitlines()) == 2


@pytest.fixture
def both():
    """Today's scenario, and one with RocksDB and unaligned barriers."""
    point = rocksdb().point | {"checkpoint.barriers": "unaligned", "checkpoint.interval": "5 s"}
    text = JOB.replace("count", LONG)
    return read_scenario(text), read_scenario(text, overrides=[override(key, value) for key, value in point.items()])


def test_the_difference_names_what_changes_and_nothing_else(both):
    found = {item.key: (item.today, item.advised) for item in diff_flink_keys(*both)}

    assert found == {
        "execution.checkpointing.interval": ("10 s", "5 s"),
        "execution.checkpointing.unaligned.enabled": (None, "true"),
        "state.backend.type": (None, "rocksdb"),
        "execution.checkpointing.incremental": (None, "true"),
    }
    assert diff_flink_keys(both[0], both[0]) == []


def test_flink_reads_what_the_difference_says(both):
    """The keys in the block of a scenario give the scenario that was advised, but for what RocksDB costs."""
    today, advised = both
    block = {item.key: item.advised for item in diff_flink_keys(today, advised)}
    text = JOB.replace("count", LONG).replace("checkpoint: {interval: 10 s}\n", "") + "flink:\n"
    read = read_scenario(text + "".join(f"  {key}: {value}\n" for key, value in block.items()))

    assert replace(advised.checkpoint) == read.checkpoint
    assert read.job.vertices[1].state.backend == "rocksdb"


@pytest.mark.parametrize(
    ("profile", "claim", "changelog", "dstl"),
    [
        ("2.x", "execution.state-recovery.claim-mode", "state.changelog", "state.changelog.dstl"),
        ("1.15", "execution.savepoint-restore-mode", "state.backend.changelog", "dstl"),
    ],
)
def test_the_changelog_brings_the_keys_it_does_not_run_without(profile, claim, changelog, dstl):
    """In NO_CLAIM, Flink's default, a job restarts without end when its changelog is switched on (tests/live)."""
    text = JOB + f"cluster: {{profile: '{profile}'}}\n"
    today = read_scenario(text)
    advised = read_scenario(text, overrides=[override("job.count.state.changelog", "on")])
    found = {item.key: item.advised for item in diff_flink_keys(today, advised, [Change(CHANGELOG, "changelog")])}

    assert {
        f"{changelog}.enabled": "true",
        f"{changelog}.storage": "filesystem",
        f"{dstl}.dfs.base-path": FOLDER,
        claim: "CLAIM",
    } == found


def test_without_a_history_all_predictions_of_other_barriers_are_within_the_factor():
    """No factor is larger than it must be."""
    off_by = [setting.off_by[0] for setting in read_results() if setting.kinds == ("barriers",)]

    assert len(off_by) == 86
    assert max(off_by) <= P50_ERROR_FACTOR <= 1.05 * max(off_by)


def test_unaligned_is_never_advised_without_a_word_about_the_sink():
    """Asked for if nobody said it; nothing if barriers stay aligned."""
    job = read_scenario(JOB)
    own = cautions(job, protocols()[-1], [])

    assert own[0].is_question
    assert "apache/iceberg#15846" in own[0].text
    assert "--set 'job.sink.connector=NAME'" in own[0].text
    assert cautions(job, protocols()[0], []) == []


def test_an_address_in_a_comment_stays_in_one_piece(both):
    """However long it is: it is there to be followed."""
    address = "https://" + "x" * 120

    assert (
        f"# {address}"
        in patch(diff_flink_keys(*both), back=False, others={}, warnings=[f"Caution: see {address}"]).splitlines()
    )
