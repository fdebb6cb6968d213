"""Whole advices, word by word, on jobs whose numbers can be counted on paper.

`python -m tests.advice.test_whole_advice` writes the texts again, to be read before they are kept.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest

from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.trials import TASK
from tests.advice.levers.test_lever_search import JOB as HEAP
from tests.advice.levers.test_lever_search import Uploading
from tests.advice.made_up import JOB, MadeUp
from tests.advice.test_horizon import JOB as GROWING
from tests.places import DATA

TEXTS = DATA / "advice"
HISTORY = """\
backtest:
  runs: 3
  simulated: 70 s
  longest: [2.2 s, 2.18 s, 2.1 s, 1.9 s, 1.5 s, 1.2 s, 1.1 s, 140 ms, 130 ms, 120 ms, 110 ms, 110 ms, 100 ms, 100 ms]
  end-to-end:
    observed: {p50: 620 ms, p90: 2.18 s, max: 2.2 s, count: 14}
    predicted: {p50: 410 ms, p90: 1.33 s, max: 1.4 s, count: 42}
    off: [p90]
"""
HOUR_MS = 3.6e6


class Filled(MadeUp):
    """Checkpoints of 40 MB, two in a run and a hundred in a long one, with 3 MB in flight; a hundredth of them takes twice as long."""

    def row(self, axes, k, more_ms):
        row = super().row(axes, k, more_ms)
        twice = dict.fromkeys(("end_to_end_max_ms", "end_to_end_p99_ms"), 2 * row["end_to_end_p50_ms"])
        return row | {"checkpointed_bytes": 4e7, "checkpointed_mean_bytes": 4e7, "persisted_bytes": 3e6} | twice


class Transactional(Uploading):
    """Nine tenths of each checkpoint are upload of 2 GB; output is visible after 4 s."""

    def row(self, axes, k, more_ms):
        return super().row(axes, k, more_ms) | {
            "checkpointed_bytes": 2e9,
            "checkpointed_mean_bytes": 2e9,
            "persisted_bytes": 3e6,
            "visible_p99_ms": 4000.0,
            "lost_records": 0,
        }


def of_kafka(job):
    """The job with a sink that is transactional, and a rate of storage that nobody knows."""
    unknown = "storage:\n  bandwidth: 10 MB/s  # UNKNOWN: How fast is it? Assumed: 10 MB/s.\n"
    named = job.replace("service: 1 ms,", "service: 1 ms, connector: kafka-exactly-once,")
    return named.replace("storage: {bandwidth: 10 MB/s}\n", unknown)


ADVICES = {
    # Aligned checkpoints take 18 s at the most; unaligned ones 120 ms.  Recovery is the interval and 5 s: 30 s keep a minute with room.
    "other barriers": (
        JOB,
        Filled({"aligned": 9000.0, "unaligned": 60.0, "aligned-timeout 1 s": 5000.0}),
        Limits(checkpoint_ms=1000, recovery_ms=60_000),
        HOUR_MS * 24,
        {},
    ),
    # Each checkpoint costs half a second: every 30 s 1.7 %, every 5 min 0.17 %.  With a failure a day renewal says sqrt(2 x 0.5 s x 1 d).
    "another interval": (
        JOB,
        Filled({"aligned": 100.0, "unaligned": 60.0}, cost_s=0.5),
        Limits(checkpoint_ms=1000),
        None,
        {},
    ),
    # Recovery takes 6 s every second: 8 % below the limit, and predictions of it may be off by 20 %.
    "too little room": (JOB, Filled({"aligned": 100.0}), Limits(recovery_ms=6500, loss=0.05), HOUR_MS * 24, {}),
    # Its sink forbids barriers that overtake data, aligned ones take 18 s, and nothing that is 64 times as fast helps.
    "nothing fits": (
        HEAP.replace("service: 1 ms,", "service: 1 ms, connector: iceberg-v1,"),
        Filled({"aligned": 9000.0, "unaligned": 100.0, "aligned-timeout 1 s": 6000.0}),
        Limits(checkpoint_ms=1000),
        HOUR_MS * 24,
        {},
    ),
    # Upload of state takes 8.1 s of 9 s.  RocksDB leaves half a second of it; the changelog, which comes later, 3 s.
    "a lever": (
        of_kafka(HEAP),
        Transactional({"aligned": 9000.0, "aligned, RocksDB incremental": 500.0, "aligned, changelog": 3000.0}),
        Limits(checkpoint_ms=1000, visible_ms=5000.0),
        None,
        {},
    ),
    # The history has 2.2 s where 500 ms are simulated; its 90 % quantile is 1.33 s instead of 2.18 s, so nobody is surer than 61 %.
    "a history": (
        JOB.replace("rate: 200/s", "rate: unlimited") + HISTORY,
        MadeUp({"aligned": 500.0, "unaligned": 60.0}),
        Limits(checkpoint_ms=1000, recovery_ms=38_000),
        HOUR_MS,
        {},
    ),
    # A failing task is judged: 35 s of 50 s.  A lost task manager would add what heartbeats take.  State grows by 40 kB/s for 200 s.
    "growing state": (
        GROWING,
        Filled({"aligned": 100.0, "unaligned": 60.0}, state=True),
        Limits(checkpoint_ms=25_000, recovery_ms=50_000),
        HOUR_MS * 24,
        {"failure": TASK, "ahead_ns": 200 * 10**9},
    ),
}


def advised(name, folder):
    """The text of an advice, a line per row of its tables, and its data."""
    job, run, limits, mtbf_ms, options = ADVICES[name]
    (folder / "job.yaml").write_text(dedent(job))
    bench = prepare_bench(folder / "job.yaml", (), (), recovery_ms=limits.recovery_ms, **options)
    found = report(bench, limits, mtbf_ms, run, folder, max_replications=3)
    return "\n\n".join(part if isinstance(part, str) else table_text(part) for part in found.parts) + "\n", shortened(
        found.plain()
    )


def table_text(table):
    return "\n".join([f"{table.title}:", *(" | ".join(row) for row in (table.header, *table.rows))])


def shortened(data):
    """The data with numbers of twelve digits, without what each of its settings has: the advised one stands there."""
    left = {key: value for key, value in data.items() if key not in ("settings", "today", "cautions")}
    return json.loads(json.dumps(left), parse_float=lambda text: float(f"{float(text):.12g}"))


def data_text(data):
    """A line per key."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()) + "\n}\n"


def text_file(name):
    return TEXTS / f"{name.replace(' ', '-')}.txt"


@pytest.mark.parametrize("name", ADVICES)
def test_a_whole_advice(name, tmp_path):
    """Choice, limits, differences, configuration, what else was tried, and what is not known."""
    text, data = advised(name, tmp_path)

    assert text_file(name).read_text().splitlines() == text.splitlines()
    assert json.loads(text_file(name).with_suffix(".json").read_text()) == data


def main():
    for name in ADVICES:
        with TemporaryDirectory() as folder:
            text, data = advised(name, Path(folder))
        text_file(name).write_text(text)
        text_file(name).with_suffix(".json").write_text(data_text(data))


if __name__ == "__main__":
    sys.exit(main())
