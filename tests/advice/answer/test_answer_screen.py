"""The answer on one screen: fifteen lines of eighty characters with the verdict above it."""

import math
from dataclasses import replace

import pytest

from benchmarks.lab.backtest_verdicts import read_results
from sim.advice.answer import CHANGE_LINES, WIDTH, lines_below, no_setting, summary
from sim.advice.configuration import KeyChange, diff_flink_keys, patch
from sim.advice.constraints import cautions, refusals
from sim.advice.judgement import Limits, judged
from sim.advice.levers import CHANGELOG, ranked
from sim.advice.settings import Change, protocols
from sim.advice.situation import FOLDER, QUEUE, UPLOAD
from sim.advice.warnings import FACTOR, watch
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.backtest import Backtest, OtherSettings
from sim.model.schema.study import loads
from sim.results.formats import ms_text
from sim.studies.sweeps.design import override
from tests.advice.levers.test_levers import JOB, situation
from tests.advice.test_judgement import measured, results

LONG = "a-vertex-with-a-name-that-is-as-long-as-names-of-sql-jobs-are-today"
VERDICT = f"Try, and watch: if '{LONG}' is not Iceberg's FlinkSink, use unaligned, every 60 s. Too little room."
LINES = lines_below(VERDICT)
LIMITS = Limits(recovery_ms=60_000, checkpoint_ms=2_000, loss=0.05, visible_ms=math.inf)


def settings():
    found = judged(measured(results(), now="aligned", unlimited=False), LIMITS, 86_400.0)
    named = {setting.name: setting for setting in found}
    return named["10 s", "aligned"], named["60 s", "unaligned"]


def changes():
    """A lever of state, and one that takes machines."""
    where = situation(JOB.replace("count", LONG), full=LONG, **{UPLOAD: 0.5, QUEUE: 0.5})
    return [own[0] for lever, own in ranked(where) if lever.name in ("RocksDB incremental", "parallelism")]


def screen(differences=(), limits=LIMITS, line_count=LINES):
    today, chosen = settings()
    job = loads(JOB.replace("count", LONG)).scenarios[0]
    pulled = changes()
    return summary(
        chosen,
        today,
        limits,
        line_count=line_count,
        dominant="18 s of 21 s: upload of state (9.3 GB at 504 MB/s)",
        changes=pulled,
        differences=differences,
        cautions=cautions(job, protocols()[-1], pulled),
        refusals=(),
        watch=watch(chosen, limits, None, 60.0),
        others=[f"parallelism: job.{LONG}.parallelism = 4"],
    ).splitlines()


NINE = [KeyChange(f"execution.checkpointing.some-quite-long-key-of-flink-{i}", "5 s", "15 s") for i in range(9)]


@pytest.mark.parametrize("differences", [[], NINE[:1], NINE])
def test_a_screenful(differences):
    lines = screen(differences)

    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > WIDTH] == []
    labels = [line[:8].strip() for line in lines if line[:8].strip()]
    always = ["keeps", "costs", "change", "caution", "watch", "back"]
    assert always == [label for label in labels if label in always]
    assert ({"ask", "today"} <= set(labels)) == (not differences)


def test_a_longer_verdict_leaves_fewer_lines():
    """Fifteen in all, an empty one among them; limits, the change and when to take it back stay."""
    long = lines_below(f"{VERDICT} {'More of it. ' * 20}")
    lines = screen(NINE, line_count=long)

    assert 1 + 3 + LINES == 15
    assert long < LINES
    assert len(lines) <= long
    labels = [line[:8].strip() for line in lines if line[:8].strip()]
    assert {"keeps", "change", "back"} <= set(labels)
    assert "ask" not in labels
    place = next(i for i, line in enumerate(lines) if line.startswith("change"))
    assert sum(line[:8].strip() in ("", "change") for line in lines[place:]) == CHANGE_LINES


def test_what_does_not_fit_is_counted():
    """The patch has all of it."""
    assert any("more lines: see below, and advised.yaml" in line for line in screen(NINE))


def test_what_nothing_keeps():
    """Long names are wrapped."""
    text = no_setting(
        "upload",
        [f"unaligned: p99 of {LONG} " * 3],
        [f"With storage 2 times as fast {LONG} would keep the limits."],
        [],
        LINES,
    )

    assert len(text.splitlines()) <= LINES
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


@pytest.fixture
def both():
    """Today's scenario, and one with RocksDB and unaligned barriers."""
    point = changes()[0].point | {"checkpoint.barriers": "unaligned", "checkpoint.interval": "5 s"}
    text = JOB.replace("count", LONG)
    return loads(text).scenarios[0], loads(
        text, overrides=[override(key, value) for key, value in point.items()]
    ).scenarios[0]


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
    read = loads(text + "".join(f"  {key}: {value}\n" for key, value in block.items())).scenarios[0]

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
    today = loads(text).scenarios[0]
    advised = loads(text, overrides=[override("job.count.state.changelog", "on")]).scenarios[0]
    found = {item.key: item.advised for item in diff_flink_keys(today, advised, [Change(CHANGELOG, "changelog")])}

    assert {
        f"{changelog}.enabled": "true",
        f"{changelog}.storage": "filesystem",
        f"{dstl}.dfs.base-path": FOLDER,
        claim: "CLAIM",
    } == found


def test_ranges_are_those_of_the_history_and_of_what_changes():
    """Without a history the factor is that of most recordings."""
    _, chosen = settings()
    history = Backtest((), other_settings=OtherSettings(1.25, 1.5))
    own, slower = (watch(chosen, LIMITS, history, 60.0, kinds) for kinds in (("barriers",), ("storage", "load")))
    factor = factors_of(history, ("barriers",)).p50

    assert (chosen.checkpoint_p50_ms / factor, chosen.checkpoint_p50_ms * factor) == (own.least_ms, own.most_ms)
    assert own.factor < FACTOR == watch(chosen, LIMITS, None, 60.0).factor < slower.factor
    assert own.back_p50_ms >= own.most_ms
    assert f"p50 of 10 > {ms_text(own.back_p50_ms)}, longest > {ms_text(own.back_longest_ms)}" in own.taken_back()
    plain = own.plain()
    assert (own.factor, [own.least_ms, own.most_ms]) == (plain["factor"], plain["p50_ms"])
    assert (own.back_p50_ms, own.back_longest_ms, 10) == tuple(
        plain[name] for name in ("roll_back_above_p50_ms", "roll_back_above_longest_ms", "checkpoints")
    )


def test_without_a_history_all_predictions_of_other_barriers_are_within_the_factor():
    """No factor is larger than it must be."""
    off_by = [setting.off_by[0] for setting in read_results() if setting.kinds == ("barriers",)]

    assert len(off_by) == 86
    assert max(off_by) <= FACTOR <= 1.05 * max(off_by)


def test_unaligned_is_never_advised_without_a_word_about_the_sink():
    """Asked for if nobody said it; a reason if it is forbidden; nothing if barriers stay aligned."""
    job = loads(JOB).scenarios[0]
    own = cautions(job, protocols()[-1], [])

    assert own[0].is_question
    assert "apache/iceberg#15846" in own[0].text
    assert "--set 'job.sink.connector=NAME'" in own[0].text
    assert cautions(job, protocols()[0], []) == []
    iceberg = loads(JOB.replace("count: forward}", "count: forward}, connector: iceberg-v1")).scenarios[0]
    (refused,) = refusals(iceberg)
    assert "loses records" in refused.text
    assert "apache/iceberg#15846" in refused.source
    assert "change that first" not in refused.text


def test_a_line_is_cut_between_words():
    """A number that is cut is another number."""
    _, chosen = settings()
    for offset in range(1, 12):
        where = f"{'x' * offset} in 1234567890 ms" * 5
        text = summary(
            chosen,
            None,
            LIMITS,
            line_count=LINES,
            dominant=where,
            changes=[],
            differences=[],
            cautions=[],
            refusals=[],
            watch=watch(chosen, LIMITS, None, 60.0),
        )
        (line,) = [line for line in text.splitlines() if line.startswith("today")]

        assert where.startswith(f"{line[8:-3]} ")
        assert len(line) <= WIDTH


def test_an_address_in_a_comment_stays_in_one_piece(both):
    """However long it is: it is there to be followed."""
    address = "https://" + "x" * 120

    assert (
        f"# {address}"
        in patch(diff_flink_keys(*both), back=False, others={}, warnings=[f"Caution: see {address}"]).splitlines()
    )
