"""Every run is watched: what a broken protocol loses or duplicates is told at once, and is in the result as a story."""

from types import SimpleNamespace

from sim.model.checkpoint import Barriers
from sim.plane.kernel import KernelPlane
from sim.protocol.commit import Committable
from sim.protocol.coordinator import Coordinator
from sim.results.violations import JournalFormatter
from sim.runtime.context import Uncommitted
from sim.runtime.invariants.output import Commits
from sim.runtime.invariants.records import NOTED
from sim.runtime.simulate import simulate
from sim.runtime.task.channel_state import ChannelState
from tests.invariants.jobs.small_jobs import ALIGNED, AT_LEAST_ONCE, MS, UNALIGNED, chain, scenario

# The account is kept while the job runs: a snapshot that says something else than what was done is told at once.


def test_a_snapshot_that_says_otherwise_is_told(monkeypatch):
    """Without any restart: its source says that it has emitted five records fewer than it has."""
    true_position = KernelPlane.bare_position

    def position(plane, task):
        here = true_position(plane, task)
        return here if plane.layout.task_gates[task] else here._replace(served=max(0, here.served - 5))

    monkeypatch.setattr(KernelPlane, "bare_position", position)
    violations = simulate(scenario(chain(), UNALIGNED, seconds=1)).violations

    assert {NOTED} == {violation.invariant for violation in violations}
    assert "it says that" in violations[0].fact
    assert any("begins snapshot" in line for line in violations[0].evidence)


# Every run is watched: what a broken protocol loses or duplicates is in the result, as a story.


def test_sound_runs_have_no_violations():
    for kind in (ALIGNED, UNALIGNED, AT_LEAST_ONCE, Barriers("aligned-timeout", 100 * MS)):
        assert simulate(scenario(chain(), kind, seconds=1)).violations == ()


def test_a_lost_capture_is_told(monkeypatch):
    """Nobody captures what lies in front of the barrier: bytes are lost, and the story names the channel."""
    monkeypatch.setattr(ChannelState, "input_overtaken", ChannelState.capture_begun)
    broken = simulate(scenario(chain(), UNALIGNED, seconds=1))

    assert "bytes are lost" in broken.violations[0].fact
    assert " -> " in broken.violations[0].where
    assert "the coordinator triggers checkpoint" in broken.violations[0].evidence[0]
    assert simulate(scenario(chain(), UNALIGNED, seconds=1), check=False).violations == ()


def test_leaked_buffers_are_told(monkeypatch):
    """What the data plane says of itself is a violation like any other."""
    from sim.plane.kernel import KernelPlane

    def leaking(_self):
        raise AssertionError("a segment is missing")

    monkeypatch.setattr(KernelPlane, "check", leaking)
    (violation,) = simulate(scenario(chain(), seconds=1)).violations

    assert (violation.where, violation.fact) == ("the data plane", "a segment is missing")


def test_retaining_too_much_is_told(monkeypatch):
    """The coordinator forgets to subsume."""
    monkeypatch.setattr(Coordinator, "__getattribute__", hoarding)
    (violation,) = simulate(scenario(chain(), seconds=1)).violations

    assert "at most 1 allowed" in violation.fact


def hoarding(self, name):
    value = object.__getattribute__(self, name)
    return (*value, 98, 99) if name == "retained" else value


def test_a_result_keeps_its_stories(monkeypatch, tmp_path):
    """In a file of their own, which a sound run in the same folder takes away."""
    sound = simulate(scenario(chain(), UNALIGNED, seconds=1))
    monkeypatch.setattr(ChannelState, "input_overtaken", ChannelState.capture_begun)
    broken = simulate(scenario(chain(), UNALIGNED, seconds=1))
    broken.write(tmp_path)

    assert str(broken.violations[0]) in (tmp_path / "violations.txt").read_text()
    sound.write(tmp_path)
    assert not (tmp_path / "violations.txt").exists()


# Transactions a job began with: each is committed or lost by the time its first checkpoint is complete, or the account says so.


NAMES = [("sink", 0), ("sink", 1)]


def account():
    contents = SimpleNamespace(checkpoints={})
    context = SimpleNamespace(names=NAMES, commits=[], stats={}, env=SimpleNamespace(now=7), contents=contents)
    formatter = JournalFormatter((), NAMES)
    return Commits(SimpleNamespace(context=context, ends=None, ledger=None, formatter=formatter))


def begun_from(before, checkpoint):
    """The account of a job that begins with a checkpoint of another one."""
    after = account()
    after.contents.checkpoints[checkpoint] = {}
    after.continue_from(before, checkpoint)
    return after


def missing(after):
    """What it finds when its next checkpoint is complete."""
    after.found.clear()
    after.completed(9, [9])
    return after.found


def test_checkpoints_that_are_gone_are_forgotten():
    before = account()
    for checkpoint in (2, 3):
        committables = Uncommitted(0, (Committable(0, checkpoint, ((0, 10),), 0, 100),))
        before.cut(checkpoint, 0, SimpleNamespace(committables=committables, held_back=(5, 1)))
    before.forget(lambda number: number < 3)

    assert [len(missing(begun_from(before, number))) for number in (2, 3)] == [0, 1]
    assert [len(begun_from(before, number).found) for number in (2, 3)] == [0, 1]
