"""Every number in every sentence and table of an advice stands in its data, over jobs and limits drawn by chance."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sim.advice.job import prepared
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.situation import COLUMNS
from sim.app.verbs.advise import advise
from sim.model.units import parse_duration
from tests.advice.answer.advice_numbers import missing, stated
from tests.advice.made_up import row

SEEDS = (20, 21, 22, 25, 26, 30, 32)
RECORDINGS = Path(__file__).parents[2] / "data" / "users-jobs"
JOB = """\
# A job whose state grows.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  count: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 40 MB, growth: 1 kB, backend: BACKEND}}
  sink: {input: {count: forward}, parallelism: 2}
checkpoint: {interval: 30 s, barriers: BARRIERS}
storage:
  # UNKNOWN: How fast is it? Assumed: nothing.
  bandwidth: 100 MB/s
run: {duration: 3 s}
"""
HISTORY = """\
backtest:
  runs: 3
  simulated: 70 s
  longest: [2.2 s, 2.18 s, 2.1 s, 1.9 s, 1.5 s, 1.2 s, 1.1 s, 140 ms, 130 ms, 120 ms, 110 ms, 110 ms, 100 ms, 100 ms]
  tail: 1.7
  end-to-end:
    observed: {p50: 620 ms, p90: 2.18 s, max: 2.2 s, count: 14}
    predicted: {p50: 410 ms, p90: 1.33 s, max: 1.4 s, count: 42}
    off: [p90]
"""


class Drawn:
    """Rows of runs that were never made: durations by barriers and state, recoveries by interval, all of them by chance."""

    def __init__(self, seed):
        self.chance = np.random.default_rng(seed)
        self.slow, self.spread, self.cost = (
            self.chance.uniform(0.2, 4),
            self.chance.choice([0.0, 0.02, 0.3]),
            self.chance.choice([0.0, 0.4]),
        )
        self.hopeless = self.chance.choice([0.0, 0.0, 0.1])
        self.of_barriers, self.rows = {}, {}

    def __call__(self, steady, failing):
        found = []
        for scenario in (*steady, *failing):
            text = repr(replace(scenario, run=replace(scenario.run, replications=1)))
            for k in range(scenario.run.replications):
                self.rows[text, k] = self.rows.get((text, k)) or self.row(scenario, k)
                found.append(self.rows[text, k])
        return pd.DataFrame(found)

    def row(self, scenario, k):
        axes = dict(scenario.axes)
        by_barriers = self.of_barriers.setdefault(axes["protocol"], self.chance.lognormal(5.5, 1.5))
        vertex, rate = scenario.job.vertices[1], scenario.storage.bytes_per_second or 1e9
        parts = dict.fromkeys(COLUMNS.values(), 0.0)
        parts |= {
            "tail_upload_ms": 1e3 * vertex.state.bytes / rate,
            "tail_queue_ms": by_barriers * vertex.service.mean / 1e6,
        }
        ms = sum(parts.values()) * (1 + self.spread * self.chance.standard_normal() ** 2)
        seconds = parse_duration(axes["interval"]) / 1e9
        loss = self.cost / seconds
        return row(
            axes,
            k,
            ms,
            completed=100 if axes["trial"] == "long" else 3,
            end_to_end_p50_ms=0.9 * ms,
            end_to_end_p90_ms=0.97 * ms,
            end_to_end_max_ms=1.1 * ms,
            throughput_per_second=400.0 * (1 - loss),
            throughput_change=-loss,
            checkpointed_bytes=float(vertex.state.bytes),
            checkpointed_mean_bytes=float(vertex.state.bytes),
            **parts,
            caught_up_ms=np.nan if self.chance.random() < self.hopeless else 1e3 * self.slow * seconds + 5000,
            bottleneck="count",
            busiest_subtask_share=self.chance.choice([0.5, 0.99]),
        )


def drawn(seed, folder):
    """``advice.json`` of a job and limits, without its runs."""
    chance = np.random.default_rng(1000 + seed)
    file = folder / f"{seed}.yaml"
    job = JOB.replace("BACKEND", str(chance.choice(["hashmap", "rocksdb"])))
    job = job.replace("BARRIERS", str(chance.choice(["aligned", "unaligned"])))
    file.write_text(job + (HISTORY if chance.random() < 0.4 else ""))
    limits = Limits(
        recovery_ms=float(chance.uniform(3e4, 2e5)) if chance.random() < 0.7 else None,
        checkpoint_ms=float(chance.lognormal(7.3, 1.2)) if chance.random() < 0.8 else None,
        loss=0.01 if chance.random() < 0.3 else None,
    )
    bench = prepared(file, (), (), recovery_ms=limits.recovery_ms, ahead_ns=300 * 10**9)
    mtbf_ms = float(chance.choice([3.6e6, 8.64e7])) if chance.random() < 0.5 else None
    return kept(report(bench, limits, mtbf_ms, Drawn(seed), folder, max_replications=3, vary=True))


def kept(found):
    """As the folder of an advice has it."""
    first, *others = found.parts
    parts = [part if isinstance(part, str) else part._asdict() for part in others]
    return json.loads(json.dumps({"verdict": first, "parts": parts, "data": found.plain()}, allow_nan=False))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    return {seed: drawn(seed, folder) for seed in SEEDS}


def test_numbers_of_sentences_and_tables_stand_in_the_data(answers):
    found = {seed: lost for seed, answer in answers.items() if (lost := missing(answer))}

    assert found == {}
    assert 40 * len(SEEDS) < sum(len(own) for answer in answers.values() for _, own in stated(answer))


def test_all_kinds_of_answers_are_drawn(answers):
    """Advised, stay, not confirmed, nothing fits; levers, growth, a history, what would fit, what is not run."""
    text = "\n".join(str(part) for answer in answers.values() for part in (answer["verdict"], *answer["parts"]))
    kinds = (
        "Use ",
        "Stay: ",
        "Try, and watch: ",
        "No setting that was tried",
        "Levers that were tried",
        "keeps the limits for about",
    )
    kinds += (
        "changes above",
        "recorded checkpoints took longer",
        "would keep the limits.",
        "Not run: ",
        "Against today",
        "a lost task manager",
    )

    assert [kind for kind in kinds if kind.lower() not in text.lower()] == []


def test_a_long_run_that_was_made_is_not_said_to_have_had_no_room(answers):
    """With too little room an advice is not confirmed, however long it ran."""
    tight = {
        answer["data"]["advised"]["ran_long"]: str(answer["parts"])
        for answer in answers.values()
        if "Too little room" in answer["verdict"]
    }

    assert "no room for a long run" not in tight[True]


def test_a_number_that_is_changed_is_missed(answers):
    """Nine of ten: another number of the data may be the same by chance."""
    changed = caught = 0
    for answer in list(answers.values())[:8]:
        for place, part in enumerate(answer["parts"]):
            for match in re.finditer(
                r"\d+(?:\.\d+)?(?= (?:ms|s|min|[kMG]B|%))", part if isinstance(part, str) and part[0] != "#" else ""
            ):
                other = f"{part[: match.start()]}{1.37 * float(match[0]) + 1:.3g}{part[match.end() :]}"
                if [*stated({**answer, "parts": [other]})] != [*stated({**answer, "parts": [part]})]:
                    parts = [*answer["parts"][:place], other, *answer["parts"][place + 1 :]]
                    changed += 1
                    caught += bool(missing({**answer, "parts": parts}))
    assert changed >= 100
    assert caught >= 0.9 * changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("J4-pressed-aligned-r1", {"p99": "2.5 s", "recovery": "1 min"}),
        ("J1-q20-aligned", {"p99": "200 ms", "recovery": "2 min"}),
        ("J2-count-aligned", {"p99": "30 ms"}),
    ],
)
def test_numbers_of_recorded_jobs_stand_in_the_data(tmp_path, name, options):
    advise(RECORDINGS / f"{name}.zip", budget="6 s", within="10 min", folder=tmp_path / "out", jobs=1, **options)
    answer = json.loads((tmp_path / "out" / "advice.json").read_text())

    assert missing(answer) == []
    assert sum(len(own) for _, own in stated(answer)) > 60
