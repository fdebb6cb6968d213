"""The accounts of commits and of routes: what writers owe at the end of a job, and where records of an output must have gone."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.sinks import Commit
from sim.plane.spec import Ship
from sim.protocol.options import Ending
from sim.runtime.context import Origin
from sim.runtime.monitors.output import CommitMonitor
from sim.runtime.monitors.records import ConversionMonitor, RouteMonitor
from tests.runtime.monitors.watched import SINK, account_of, end_of, facts, stateful, with_scenario

LATEST = 6


def end(account, *, drained=False, stop=None):
    account.ends = SimpleNamespace(end=lambda _: SimpleNamespace(drained=drained, stop=stop, ending=Ending.DRAIN))


class TestWhatIsOwed:
    """The sink is transactional and has committed nothing."""

    @pytest.fixture
    def account(self):
        account = account_of(CommitMonitor, stateful())
        job = account.context.scenario.job
        committing = replace(job.vertices[-1], commit=Commit(holds_back=3))
        return with_scenario(account, job=replace(job, vertices=(*job.vertices[:-1], committing)))

    def read(self, account):
        return account.context.plane.position(SINK).records_read.tolist()

    def test_drained_it_owes_all_it_has_read(self, account):
        end(account, drained=True)
        assert {SINK: self.read(account)} == account._to_commit()
        (found,) = account.at_the_end(end_of(stateful(), finished=True))
        assert f"the job has finished and {sum(self.read(account))} records are lost: never committed" == found.fact

    def test_what_came_behind_the_cut_belongs_to_the_next_job(self, account):
        end(account, stop=LATEST)
        at_cut = account.contents.checkpoints[LATEST][SINK].position.records_read.tolist()
        assert at_cut < self.read(account)
        assert at_cut == account._to_commit_by(SINK, 0)


class TestRoutes:
    @pytest.fixture
    def account(self):
        return account_of(RouteMonitor, stateful())

    def facts_of(self, account):
        return [violation.fact for violation in account.at_the_end(None)]

    def test_a_record_that_went_astray(self, account, monkeypatch):
        read = account.context.plane.channels("records_out")
        read["records_out"][0] += 500
        monkeypatch.setattr(type(account.context.plane), "channels", lambda *_: read)
        assert len(self.facts_of(account)) == 1
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert self.facts_of(account) == [], "another job has begun elsewhere in its turns"

    @pytest.mark.parametrize(
        ("ship", "chooses"),
        [(Ship.REBALANCE, True), (Ship.RESCALE, True), (Ship.BROADCAST, False), (Ship.GLOBAL, False)],
    )
    def test_edges_that_choose(self, account, ship, chooses):
        edges = tuple(replace(edge, ship=ship) for edge in account.context.spec.edges)
        account.context = replace(account.context, spec=replace(account.context.spec, edges=edges))
        assert (2 if chooses else 0) == len(list(account._routes()))

    def test_turns_begin_somewhere(self, account):
        """Those of a rescale edge with its first reader."""
        edges = account.context.spec.edges
        firsts = {}
        for ship in (Ship.REBALANCE, Ship.RESCALE):
            firsts[ship] = set()
            for seed in range(8):
                spec = replace(account.context.spec, seed=seed, edges=tuple(replace(edge, ship=ship) for edge in edges))
                account.context = replace(account.context, spec=spec)
                firsts[ship] |= {route.first for route in account._routes()}

        assert {Ship.REBALANCE: {0, 1}, Ship.RESCALE: {0}} == firsts


class TestBarriersInOutputs:
    @pytest.fixture
    def account(self):
        account = account_of(ConversionMonitor, stateful())
        account.barrier_waits(LATEST, 0)
        return account

    def completed(self, account, checkpoint=LATEST):
        account.completed(checkpoint, ())
        return facts(account)

    def test_one_that_heard_of_its_deadline_and_stayed(self, account):
        account.deadline_heard(LATEST, 0)
        assert len(self.completed(account)) == 1
        assert self.completed(account) == [], "told once"

    def test_one_of_another_checkpoint(self, account):
        """What is older is over with it, what is newer goes on."""
        account.barrier_waits(LATEST + 1, 1)
        for checkpoint, task in ((LATEST, 0), (LATEST + 1, 1)):
            account.deadline_heard(checkpoint, task)
        account.forget(lambda number: number == LATEST)
        assert self.completed(account) == []
        assert len(self.completed(account, LATEST + 1)) == 1
