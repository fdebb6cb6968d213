"""Which settings are tried: barriers, intervals, and what each of them changes of the scenario."""

import pytest

from sim.advice.report import mtbf_of_faults_ms
from sim.advice.settings import (
    Candidate,
    allowed_protocols,
    intervals,
    make_candidate,
    protocols,
    sink_hazards,
    sinks_of,
    todays_setting,
    with_files_after_barrier,
)
from tests.advice.made_up import JOB
from tests.scenarios import read_scenario

S = 10**9
NAMED = {protocol.name: protocol for protocol in protocols()}


def scenario(**replaced):
    """The job with some of its words replaced: checkpoint='...' and so on."""
    text = JOB
    for before, after in replaced.items():
        text = text.replace({"checkpoint": "{interval: 30 s}", "sink": "service: 1 ms,", "end": "run:"}[before], after)
    return read_scenario(text)


def test_barriers_are_tried_from_the_smallest_change_to_the_largest():
    """The order decides among equals; barriers of the first four stay aligned, or overtake after a second."""
    names = ["aligned", "aligned, debloating", "aligned-timeout 1 s", "aligned-timeout 1 s, debloating", "unaligned"]

    assert names == [protocol.name for protocol in protocols()]
    assert [protocol.aligned for protocol in protocols()] == [True, True, False, False, False]
    assert [NAMED[name].barriers for name in names[:3]] == ["aligned", "aligned", "aligned-timeout 1 s"]
    assert NAMED[names[3]].point == {"checkpoint.barriers": {"aligned-timeout": "1 s"}, "cluster.network.debloat": "on"}
    assert NAMED["unaligned"].point == {"checkpoint.barriers": "unaligned", "cluster.network.debloat": "off"}


@pytest.mark.parametrize(
    ("recovery_ms", "visible_ms", "further"),
    [
        (None, None, []),
        (3999.0, None, [1]),
        (4000.0, None, [2]),
        (1999.0, None, []),
        (None, 45_000.0, [20]),
        (240_000.0, 10_000.0, [5, 120]),
        (1e9, None, [3600]),
    ],
)
def test_a_limit_brings_the_interval_of_half_of_it(recovery_ms, visible_ms, further):
    """A whole interval is lost at worst: 4 s leave room for 2 s.  Below two seconds none is left."""
    found = intervals(scenario(), recovery_ms=recovery_ms, visible_ms=visible_ms)

    assert sorted([10, 30, 60, 180, 600, *further]) == [interval_ns // S for interval_ns in found]


def test_todays_interval_is_on_the_ladder():
    seven, none = (
        [
            interval_ns // S
            for interval_ns in intervals(
                scenario(checkpoint=f"{{interval: {today}}}"), recovery_ms=None, visible_ms=None
            )
        ]
        for today in ("7 s", "off")
    )

    assert seven == [7, 10, 30, 60, 180, 600]
    assert none == [10, 30, 60, 180, 600]


@pytest.mark.parametrize(
    ("checkpoint", "network", "expected"),
    [
        ("{interval: 30 s}", "", (30 * S, "aligned", True)),
        ("{interval: off}", "", (None, "aligned", True)),
        ("{interval: 5 s, barriers: unaligned}", "", (5 * S, "unaligned", False)),
        ("{interval: 5 s, barriers: {aligned-timeout: 1 s}}", "", (5 * S, "aligned-timeout 1 s", False)),
        ("{interval: 5 s, barriers: {aligned-timeout: 7 s}}", "", (5 * S, "aligned-timeout 7 s", False)),
        ("{interval: 5 s}", "cluster: {network: {debloat: on}}\n", (5 * S, "aligned, debloating", True)),
        (
            "{interval: 5 s, barriers: unaligned}",
            "cluster: {network: {debloat: on}}\n",
            (5 * S, "unaligned, debloating", False),
        ),
    ],
)
def test_todays_setting_is_what_the_job_says(checkpoint, network, expected):
    interval_ns, protocol = todays_setting(scenario(checkpoint=checkpoint, end=f"{network}run:"))

    assert expected == (interval_ns, protocol.name, protocol.aligned)
    assert (protocol in protocols()) == (protocol.name in NAMED)


def test_a_setting_changes_what_differs_from_today_and_nothing_else():
    """Barriers are written only if they differ, debloating only if it is switched, a short timeout with any change."""
    job, short = scenario(), scenario(checkpoint="{interval: 30 s, timeout: 599 s}")
    debloated = scenario(end="cluster: {network: {debloat: on}}\nrun:")

    assert (
        {}
        == make_candidate(job, 30 * S, NAMED["aligned"]).point
        == make_candidate(short, 30 * S, NAMED["aligned"]).point
    )
    assert make_candidate(job, 60 * S, NAMED["aligned"]).point == {"checkpoint.interval": "1 min"}
    assert make_candidate(short, 60 * S, NAMED["aligned"]).point == {
        "checkpoint.interval": "1 min",
        "checkpoint.timeout": "10 min",
    }
    assert make_candidate(job, 30 * S, NAMED["unaligned"]).point == {"checkpoint.barriers": "unaligned"}
    assert make_candidate(job, 30 * S, NAMED["aligned, debloating"]).point == {"cluster.network.debloat": "on"}
    assert make_candidate(debloated, 30 * S, NAMED["aligned"]).point == {"cluster.network.debloat": "off"}
    # whatever it changes
    assert hash(Candidate("1 min", "unaligned", {}, NAMED["unaligned"])) == hash(
        make_candidate(job, 60 * S, NAMED["unaligned"])
    )
    assert make_candidate(job, 60 * S, NAMED["unaligned"]).name == ("1 min", "unaligned")


def test_one_checkpoint_at_a_time_where_barriers_overtake():
    """Flink runs unaligned checkpoints alone; aligned ones stay as many as they are."""
    several = scenario(checkpoint="{interval: 30 s, max-concurrent: 2}")

    assert make_candidate(several, 30 * S, NAMED["unaligned"]).point["checkpoint.max-concurrent"] == 1
    assert "checkpoint.max-concurrent" not in make_candidate(several, 60 * S, NAMED["aligned"]).point
    assert "checkpoint.max-concurrent" not in make_candidate(scenario(), 60 * S, NAMED["unaligned"]).point


@pytest.mark.parametrize(
    ("sink", "checkpoint", "is_tried"),
    [
        ("service: 1 ms,", "{interval: 30 s}", False),
        ("service: 1 ms, snapshot: {pre-barrier: 1 ms},", "{interval: 30 s}", True),
        ("service: 1 ms, flush: {files: 1, bytes: 1 MB},", "{interval: 30 s}", True),
        ("service: 1 ms, snapshot: {pre-barrier: 1 ms},", "{interval: 30 s, operator-io: async}", False),
    ],
)
def test_files_go_behind_the_barrier_where_operators_work_before_it(sink, checkpoint, is_tried):
    found = with_files_after_barrier(scenario(sink=sink, checkpoint=checkpoint), NAMED["aligned, debloating"])

    assert is_tried == (found is not None)
    if found is not None:
        assert found.name == "aligned, debloating, operator files behind the barrier (FLINK-37375)"
        assert NAMED["aligned, debloating"].point | {"checkpoint.operator-io": "async"} == found.point
        assert found.aligned


def test_sinks_are_known_by_what_the_job_says_or_by_their_names():
    """A connector counts wherever it is written, a name at the end of the job."""
    named = read_scenario(JOB.replace("sink:", "'IcebergFilesCommitter -> Sink':"))

    assert sinks_of(scenario()) == {"sink": None}
    assert sinks_of(scenario(sink="service: 1 ms, connector: iceberg-v1,"))["sink"].overtaking == "loses"
    assert {name: kind.overtaking for name, kind in sinks_of(named).items()} == {
        "IcebergFilesCommitter -> Sink": "loses"
    }


def test_a_sink_that_loses_records_forbids_barriers_that_overtake():
    """It is a danger only where they may overtake today."""
    overtaking = "{interval: 30 s, barriers: unaligned}"
    lossy, safe = ({"sink": f"service: 1 ms, connector: {name},"} for name in ("iceberg-v1", "iceberg-v2"))

    assert [protocol.name for protocol in allowed_protocols(scenario(**lossy))] == ["aligned", "aligned, debloating"]
    assert protocols() == allowed_protocols(scenario(**safe)) == allowed_protocols(scenario())
    assert (
        []
        == sink_hazards(scenario(**lossy))
        == sink_hazards(scenario(**safe, checkpoint=overtaking))
        == sink_hazards(scenario(checkpoint=overtaking))
    )
    (danger,) = sink_hazards(scenario(**lossy, checkpoint=overtaking))
    assert danger.startswith(
        "'sink' writes to Iceberg's FlinkSink, which loses records if barriers overtake data (apache/iceberg#15846"
    )
    assert danger.endswith("Instead: IcebergSink (iceberg-v2)")


def test_debloating_keeps_the_target_of_the_job():
    """Switching it on where it is on would set Flink's default."""
    own = scenario(end="cluster: {network: {debloat: {target: 2 s}}}\nrun:")

    assert make_candidate(own, 30 * S, NAMED["aligned, debloating"]).point == {}
    assert make_candidate(own, 30 * S, NAMED["aligned-timeout 1 s, debloating"]).point == {
        "checkpoint.barriers": {"aligned-timeout": "1 s"}
    }


@pytest.mark.parametrize(("interval", "loses"), [("10 min", True), ("4 min", False)])
def test_transactions_that_end_before_the_interval_are_a_danger(interval, loses):
    """Nothing of them becomes visible, whatever the barriers."""
    sink = "service: 1 ms, connector: jdbc-xa, commit: {transaction-timeout: 5 min},"
    found = sink_hazards(scenario(sink=sink, checkpoint=f"{{interval: {interval}}}"))

    assert loses == any("longer than its timeout, 5 min: its output is lost" in danger for danger in found)


@pytest.mark.parametrize(
    ("faults", "mtbf_ms"),
    [
        ("[{kill: sink, every: 20 s}]", 20_000.0),
        ("[{kill: sink, every: 20 s}, {task-manager: 0, every: 20 s}]", 10_000.0),
        ("[{kill: sink, at: 20 s}, {storage: outage, every: 5 s, lasts: 1 s}]", None),
    ],
)
def test_faults_of_the_file_say_how_often_the_job_fails(faults, mtbf_ms):
    """By their laws; times and outages are no rate of failures."""
    found = mtbf_of_faults_ms(read_scenario(f"{JOB}faults: {faults}\n"))

    assert found == (None if mtbf_ms is None else pytest.approx(mtbf_ms))
