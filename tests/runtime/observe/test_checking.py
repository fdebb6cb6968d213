"""Every run is watched: what a broken protocol loses or duplicates is in the result, as a story."""

from sim.model.checkpoint import Barriers
from sim.protocol.coordinator import Coordinator
from sim.runtime.simulate import simulate
from sim.runtime.task.channel_state import ChannelState
from tests.laws.small_jobs import ALIGNED, AT_LEAST_ONCE, MS, UNALIGNED, chain, scenario


def test_sound_runs_have_no_violations():
    for kind in (ALIGNED, UNALIGNED, AT_LEAST_ONCE, Barriers("aligned-timeout", 100 * MS)):
        assert simulate(scenario(chain(), kind, seconds=1)).violations == ()


def test_a_lost_capture_is_told(monkeypatch):
    """Nobody captures what lies in front of the barrier: bytes are lost, and the story names the channel."""
    monkeypatch.setattr(ChannelState, "input_overtaken", ChannelState.capture_begun)
    broken = simulate(scenario(chain(), UNALIGNED, seconds=1))

    assert "bytes are lost" in broken.violations[0].fact
    assert " -> " in broken.violations[0].where
    assert "the coordinator triggers checkpoint" in broken.violations[0].story[0]
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
