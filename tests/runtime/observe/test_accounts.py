"""The account is kept while the job runs: a snapshot that says something else than what was done is told at once."""

from sim.invariants.counts import NOTED
from sim.plane.kernel import KernelPlane
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import UNALIGNED, chain, scenario


def test_a_snapshot_that_says_otherwise_is_told(monkeypatch):
    """Without any restart: its source says that it has emitted five records fewer than it has."""
    true_position = KernelPlane.bare_position

    def position(plane, task):
        here = true_position(plane, task)
        return here if plane.layout.task_gates[task] else here._replace(served=max(0, here.served - 5))

    monkeypatch.setattr(KernelPlane, "bare_position", position)
    violations = simulate(scenario(chain(), UNALIGNED, seconds=1)).violations

    assert {NOTED} == {violation.law for violation in violations}
    assert "it says that" in violations[0].fact
    assert any("begins snapshot" in line for line in violations[0].story)
