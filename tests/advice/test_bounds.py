"""An answer comes in time, from what has run: on a machine that others keep busy, by a clock that nobody has to wait for."""

import pytest

from sim.advice.texts import verdict
from sim.advice.trials import OUT_OF_TIME, NothingRanError, TrialRunner
from sim.studies.progress import TimeLeft
from tests.advice.made_up import JOB, row, searched


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


class BusyMachine:
    """Each cell takes processor time, and on the clock as long as `slowness` says of its number; heard twice a second."""

    def __init__(self, clock, slowness, error=""):
        self.clock, self.slowness, self.error = clock, slowness, error
        self.ran = 0

    def rows(self, missing, watch, check):
        del check
        for place, cell in enumerate(missing):
            for _ in range(round(2 * self.slowness(self.ran))):
                self.clock.now_s += 0.5
                watch(place, 0)
            self.ran += 1
            axes = dict(cell.scenario.axes) or {"interval": "30 s"}
            found = row(axes, cell.replication, 100.0) | {
                "cell": cell.id,
                "completed": 2,
                "error": self.error,
                "violations": 0,
                "violation": "",
                "restarts": 0.0,
            }
            yield (
                found
                | ({"status": "error"} if self.error else {})
                | {
                    "host": "here",
                    "attempt": 0,
                    "cpu_s": self.slowness(self.ran),
                    "wall_s": self.slowness(self.ran),
                }
            )


def race_of(folder, slowness, within_s, budget_s=1e6, error=""):
    """(search, clock)."""
    (folder / "job.yaml").write_text(JOB)
    clock = Clock()
    runner = TrialRunner(folder / "out", budget_s=budget_s, within_s=within_s, clock=clock)
    runner.workers = BusyMachine(clock, slowness, error)
    search = searched(folder / "job.yaml", runner, checkpoint_ms=1000)
    return search, clock


@pytest.mark.parametrize("slowness", [lambda _: 1.0, lambda _: 10.0, lambda ran: 1.0 if ran < 20 else 40.0])
def test_the_answer_comes_in_time(tmp_path, slowness):
    """However slow the machine is, and wherever it becomes slow: half a second late, as often as runs are looked at."""
    search, clock = race_of(tmp_path, slowness, within_s=200.0)

    assert clock.now_s <= 200.5
    assert search.current_candidate.name in search.trials
    assert {candidate.name for candidate in search.runs} == set(search.trials)
    assert all(
        len(values) == search.runs[search.candidate_of(name)]
        for name, worlds in search.trials.items()
        for values in worlds.values()
    )


@pytest.mark.parametrize("budget_s", [4.0, 12.0, 1e6])
def test_a_busy_machine_gives_the_same_answer(tmp_path, budget_s):
    """Runs take seven times the processor time there: the budget counts what they simulate, so it buys as many."""
    quiet, busy = (
        race_of(folder_of(tmp_path, name), slowness, within_s=1e6, budget_s=budget_s)[0]
        for name, slowness in (("quiet", lambda _: 1.0), ("busy", lambda ran: 7.0 if ran % 2 else 3.0))
    )

    assert quiet.runs == busy.runs
    assert quiet.chosen.name == busy.chosen.name
    assert quiet.skipped_sentences == busy.skipped_sentences


def test_what_time_did_not_allow_is_named(tmp_path):
    """A machine that is idle confirms the choice in the same time."""
    search, _ = race_of(folder_of(tmp_path, "busy"), lambda _: 30.0, within_s=200.0)
    idle, _ = race_of(folder_of(tmp_path, "idle"), lambda _: 0.5, within_s=200.0)

    assert any(f": {OUT_OF_TIME}" in reason for reason in search.skipped_sentences)
    assert not search.confirmed
    assert ", and monitor it. " in verdict(search, search.choice())[0]
    assert idle.confirmed


def test_a_setting_counts_with_the_runs_that_are_whole(tmp_path):
    """Time is up between the undisturbed run and the one with a failure: today's setting stays, the others are as if never begun."""
    search, _ = race_of(tmp_path, lambda ran: 1.0 if ran < 6 else 1000.0, within_s=60.0)

    assert [search.current_candidate.name] == list(search.trials)
    assert search.chosen.name == ("30 s", "aligned")


def test_no_time_at_all_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(NothingRanError, match="increase --within"):
        race_of(tmp_path, lambda _: 30.0, within_s=20.0)


def test_runs_that_all_fail_are_an_error_with_their_reason(tmp_path):
    with pytest.raises(NothingRanError, match="every run failed: MemoryError: 4 GB"):
        race_of(tmp_path, lambda _: 1.0, within_s=1e4, error="MemoryError: 4 GB")


def test_a_promise_is_broken_once_for_each_reason():
    clock = Clock()
    left = TimeLeft(clock)
    texts = [left.text(100.0, str)]
    for now_s, estimate_s in ((10, 95), (20, 100), (30, 85), (40, 60)):
        clock.now_s = now_s
        texts.append(left.text(estimate_s, lambda: "others work here, too"))

    assert texts[:2] == ["at most 1 min 40 s left", "at most 1 min 30 s left"]
    assert texts[2] == "at most 1 min 40 s left, 20 s more than promised: others work here, too"
    assert texts[3:] == ["at most 1 min 25 s left", "at most 1 min 0 s left"]


def folder_of(place, name):
    (place / name).mkdir()
    return place / name
