"""Restored and stored state: whose it must be, all of it, once; ages of keys, and files that hold it (invariants 85 to 87, 117)."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.state import Changelog, Ttl
from sim.results.journal import Entry, EventType
from sim.runtime.context import RestoredState, Stamp, StateSnapshot
from sim.runtime.invariants.state import (
    KeyedStates,
    RestoredStates,
    _differences,
    _union_errors,
    bytes_written_after,
    find_gap,
    split_cohorts,
    ttl_errors,
)
from sim.storage.lsm import TreeImage
from sim.storage.state_backends import Expiry
from sim.storage.state_files import File, FrozenState, Handle, WriteStep
from tests.invariants.watched import MAP, account_of, facts, stateful, with_journal, with_scenario

OWN, OTHER = Stamp(0, 3, "map", 1), Stamp(1, 2, "map", 0)
ALL, HALF = Fraction(1), Fraction(1, 2)


def differences(*restored_parts, stored=None):
    return list(_differences({"keyed": (OWN, 100)} if stored is None else stored, restored_parts))


def keyed(stamp=OWN, share=ALL, size_bytes=100, copied_from=None):
    return RestoredState("keyed", stamp, share, size_bytes, copied_from)


def test_state_that_is_missing_is_told():
    assert differences() == ["its keyed state is not restored: 100 bytes in the checkpoint"]


def test_state_in_parts_is_told():
    """Half of it, all of it twice, or one whole in two halves: a task that was not rescaled gets its state in one piece."""
    assert differences(keyed(share=HALF)) == ["its keyed state comes back 0.5 times, in 1 part"]
    assert differences(keyed(), keyed()) == ["its keyed state comes back 2 times, in 2 parts"]
    assert differences(keyed(share=HALF), keyed(share=HALF)) == ["its keyed state comes back 1 times, in 2 parts"]


def test_state_of_somebody_else_is_told():
    assert differences(keyed(OTHER)) == [
        "its keyed state is that of map[0] at checkpoint 2 of job 1, the checkpoint holds that of map[1] at checkpoint 3"
    ]


def test_state_of_another_size_is_told():
    assert differences(keyed(size_bytes=99)) == ["its keyed state comes back with 99 bytes, the checkpoint holds 100"]


def test_a_copy_of_something_else_is_told():
    assert differences(keyed(copied_from=("map", 1, 2))) == [
        "its keyed state is read from a local copy of another one, ('map', 1, 2)"
    ]


def test_state_that_no_checkpoint_holds_is_told():
    """Each kind of state on its own."""
    operator = RestoredState("operator", OWN, ALL, 5)

    assert differences(keyed(), operator) == [
        "it gets operator state, that of map[1] at checkpoint 3, and its checkpoint holds none"
    ]
    assert differences(keyed(), operator, stored={"keyed": (OWN, 100), "operator": (OWN, 5)}) == []


def union_facts(*pieces):
    stored = [(OWN, 60), (Stamp(0, 3, "map", 0), 60)]
    return list(_union_errors(stored, [RestoredState("union", *piece) for piece in pieces]))


def test_union_list_state_comes_back_as_it_was_written_by_all():
    first, second = (OWN, ALL, 60), (Stamp(0, 3, "map", 0), ALL, 60)

    assert union_facts(second, first) == []
    for wrong in (
        [first],
        [first, first],
        [first, second, second],
        [first, (OTHER, ALL, 60)],
        [first, (*second[:1], HALF, 60)],
    ):
        (fact,) = union_facts(*wrong)
        assert fact.endswith("the checkpoint holds 2 parts, 120 bytes")


# Invariant 87: how old keys are, and which have expired.


S = 1_000_000_000
TTL = 10 * S
KEYS = ((0, 5 * S, 50_000), (5 * S, 6 * S, 20_000))


def fact(after, *, before=KEYS, before_s=6, now_s=12, added=0, rewritten=0):
    return ttl_errors(before, before_s * S, after, now_s * S, TTL, added, rewritten)


def test_keys_that_are_young_again():
    assert (
        fact(((11 * S, 12 * S, 50_000),), added=1_000)
        == "50000 bytes have a last write after 6 s, but at most 1303 were written"
    )


def test_keys_that_do_not_expire():
    """They are told by their age; where their age was changed, by their number."""
    assert fact(KEYS) == "state contains keys last written 12 s ago; TTL is 10 s"
    assert fact(((5 * S, 6 * S, 95_000),)).startswith("expired keys are still in state: 95000 bytes")


def test_whole_bytes_expire():
    """A cohort may begin before the horizon by what is less than two bytes of it."""
    assert fact(((2 * S - 60_000, 5 * S, 30_000), (5 * S, 6 * S, 20_000))) is None
    assert fact(((2 * S - 220_000, 5 * S, 30_000), (5 * S, 6 * S, 20_000))).startswith("state contains keys")


def test_a_nanosecond_of_much_state_is_rounded_off():
    """30 B per nanosecond: one is 30 B, and 303 of them are let pass."""
    large = ((0, 5 * S, 150 * S),)

    assert fact(((2 * S - 1, 5 * S, 90 * S + 30),), before=large) is None
    assert fact(((2 * S - 2, 5 * S, 90 * S + 60),), before=large).startswith("state contains keys")
    assert fact(((2 * S, 5 * S, 90 * S - 30 * 302),), before=large) is None
    assert fact(((2 * S, 5 * S, 90 * S - 30 * 302 - 1),), before=large).startswith("keys have expired too early")


def test_a_subtask_gets_its_shares():
    half = Fraction(1, 2)
    assert split_cohorts([(((S, 2 * S, 40),), half), (((0, S, 100),), half)]) == ((0, S, 50), (S, 2 * S, 20))


def test_what_is_rounded_off_is_let_pass_to_the_byte():
    """300 times of a byte, and one for each cohort before and now."""
    slack = 300 + 2 + 1

    assert fact(((2 * S, 6 * S, 50_000 - slack),)) is None
    assert fact(((2 * S, 6 * S, 50_000 - slack - 1),)).startswith("keys have expired too early")
    assert fact(((5 * S, 6 * S, 50_000 + 20_000 + slack),)) is None
    assert fact(((5 * S, 6 * S, 50_000 + 20_000 + slack + 1),)).startswith("expired keys are still in state")


def test_what_is_written_counts_once_and_what_is_rewritten_twice():
    """An entry that is rewritten may be larger than the others."""
    most = 1_000 + 2 * 100 + 300 + 2 + 3
    left = (2 * S, 5 * S, 30_000), (5 * S, 6 * S, 20_000)

    assert fact((*left, (6 * S, 12 * S, most)), added=1_000, rewritten=100) is None
    assert fact((*left, (6 * S, 12 * S, most + 1)), added=1_000, rewritten=100).count("have a last write after")


def test_a_cohort_goes_in_proportion():
    assert [bytes_written_after(((S, 5 * S, 40),), horizon * S) for horizon in (0, 1, 4, 5, 9)] == [40, 40, 10, 0, 0]


def test_a_log_goes_on_from_the_materialisation_to_the_cut():
    """The first file may begin earlier; order does not matter."""
    assert find_gap([(30, 10), (20, 15)], 10, 30) is None
    assert find_gap([], 10, 10) is None


def test_the_first_gap_of_a_log():
    assert find_gap([(30, 10)], 10, 30) == (10, 20), "its oldest file"
    assert find_gap([(20, 10), (30, 5)], 10, 30) == (20, 25), "one in the middle"
    assert find_gap([(25, 15)], 10, 30) == (25, 30), "its tail"
    assert find_gap([], 0, 30) == (0, 30)


# Told what is not true: snapshots that lack state, restores that bring that of another.


LATEST = 6
SHARE_BYTES, VALUE_BYTES = 200_000, 1000  # of the map's state that a subtask has; of an entry
ALL = Fraction(1)


@pytest.fixture
def account():
    """It has heard that both subtasks of the map stood at their cuts."""
    account = account_of(KeyedStates, stateful())
    note_cuts(account, LATEST)
    return account


def note_cuts(account, checkpoint):
    for task in (MAP, MAP + 1):
        counted = account.context.plane.counted(task)
        account.ledger.note(checkpoint, task, counted.served, 0, counted.read, counted.written)


def snapshot(*sizes, reused=(), awaited=(), image=None, type_="checkpoint", ages=()):
    files = tuple(File(name, size_bytes, "shared") for name, size_bytes in sizes)
    return StateSnapshot(1, type_, FrozenState(0, (WriteStep(files),), reused, awaited, image=image), 0, ages=ages)


def of_subtask(account, **state):
    """The state of map[0], with other options."""
    subtask = account._subtasks[MAP]
    subtask.state = replace(subtask.state, **state)
    return subtask


class TestSizes:
    def facts_of(self, account, *arguments, **options):
        account.state_taken(LATEST, MAP, snapshot(*arguments, **options))
        return facts(account)

    def test_a_snapshot_holds_all_state(self, account):
        """Nine tenths, as merged tables are estimates, less two entries that were rounded off."""
        least = SHARE_BYTES * 9 // 10 - 2 * VALUE_BYTES
        assert self.facts_of(account, ("1.sst", least)) == []
        assert [f"its files contain {least - 1} bytes, the state has {SHARE_BYTES}"] == self.facts_of(
            account, ("1.sst", least - 1)
        )

    @pytest.mark.parametrize("name", ["meta", "CURRENT", "MANIFEST", "OPTIONS"])
    def test_files_without_entries_do_not_count(self, account, name):
        assert [f"its files contain 0 bytes, the state has {SHARE_BYTES}"] == self.facts_of(
            account, (name, SHARE_BYTES)
        )

    def test_every_table_of_the_tree_has_a_file(self, account):
        image = stateful().contents.checkpoints[LATEST][MAP].parts[0][0].keyed.image
        assert isinstance(image, TreeImage)
        table = next(table for level in image.levels for table in level)
        (fact,) = self.facts_of(account, ("1.sst", SHARE_BYTES), image=image)
        assert f"no file for SST {table.name} ({table.entries} keys)" == fact

    def test_keys_that_are_added_are_state(self, account):
        """Twice the entries from before after so many records."""
        served = account.ledger.served(LATEST, MAP)
        of_subtask(account, growth_bytes=100)
        grown_bytes = account._subtasks[MAP].added_bytes(served)
        assert grown_bytes > 0
        assert [f"its files contain 0 bytes, the state has {SHARE_BYTES + grown_bytes}"] == self.facts_of(account)


class TestChangelogs:
    """The log begins with the share of the subtask; an entry is added for every second record."""

    @pytest.fixture
    def logged(self, account):
        return of_subtask(account, changelog=Changelog())

    def end(self, account, subtask):
        served = account.ledger.served(LATEST, MAP)
        assert SHARE_BYTES + served // 2 * VALUE_BYTES == subtask.log_end(served)
        return subtask.log_end(served)

    def facts_of(self, account, **options):
        account.state_taken(LATEST, MAP, snapshot(**options))
        return facts(account)

    def log(self, *ends):
        return tuple(File(f"log-{end}", end - begin, "shared") for begin, end in zip((0, *ends), ends, strict=False))

    def test_the_log_reaches_to_the_cut(self, account, logged):
        end = self.end(account, logged)
        assert self.facts_of(account, awaited=self.log(1000, end)) == []
        assert [
            f"positions {end - 1} to {end} of its changelog are missing from all files (1 byte; the materialization contains everything before 0)"
        ] == self.facts_of(account, awaited=self.log(1000, end - 1))

    def test_behind_a_materialisation_the_log_begins_anew(self, account, logged):
        end = self.end(account, logged)
        base = Handle("1.sst", SHARE_BYTES, "shared", 3)
        account.materialising(MAP, 1)
        begun = logged.materialising[1]
        assert begun == logged.log_end(account.context.plane.position(MAP).served)
        account.materialised(MAP, 1, [base])
        assert logged.materialising == {}
        assert begun == logged.from_bytes >= end
        assert self.facts_of(account, reused=(base,)) == []
        assert [f"it does not reference 1.sst, so {SHARE_BYTES} bytes of its state are missing"] == self.facts_of(
            account
        )


class TestCompletion:
    def facts_of(self, account):
        account.completed(LATEST, ())
        return facts(account)

    @pytest.fixture
    def stored(self, account):
        stored = account.contents.checkpoints[LATEST][MAP].parts[0][0]
        account.state_taken(LATEST, MAP, stored)
        return stored

    def test_less_is_named_than_was_frozen(self, account, stored, monkeypatch):
        frozen_bytes, count = stored.keyed.full_bytes, len(stored.handles)
        shorter = stored.handles[0]._replace(size_bytes=stored.handles[0].size_bytes - 1)
        monkeypatch.setattr(stored, "handles", [shorter, *stored.handles[1:]])
        assert [
            f"its {count} files contain {frozen_bytes - 1} bytes of keyed state; {frozen_bytes} were frozen"
        ] == self.facts_of(account)

    def test_files_are_there(self, account, stored, monkeypatch):
        files = [account.context.storage.files[handle.file] for handle in stored.handles[:2]]
        monkeypatch.setattr(files[0], "deleted_ns", 1)
        assert [f"1 referenced file does not exist: {stored.handles[0].name}"] == self.facts_of(account)
        account.state_taken(LATEST, MAP, stored)
        monkeypatch.setattr(files[1], "deleted_ns", 1)
        assert [f"2 referenced files do not exist: {stored.handles[0].name}"] == self.facts_of(account)

    def test_a_task_without_a_part_is_not_looked_at(self, account, stored, monkeypatch):
        monkeypatch.setattr(account.contents.checkpoints[LATEST][MAP], "parts", ())
        assert self.facts_of(account) == []
        assert account._completed[LATEST] == {}


class TestRestores:
    def restored(self, account, *pieces, checkpoint=LATEST):
        account.restored(checkpoint, MAP, pieces, 0)
        return account._subtasks.get(MAP)

    @pytest.fixture
    def stored(self, account):
        for task in (MAP, MAP + 1):
            stored = account.contents.checkpoints[LATEST][task].parts[0][0]
            account.state_taken(LATEST, task, stored)
        account.completed(LATEST, ())
        facts(account)
        return account.contents.checkpoints[LATEST][MAP].parts[0][0]

    def restored_parts(self, account, index=0, share=ALL):
        stored = account.contents.checkpoints[LATEST][MAP + index].parts[0][0]
        return RestoredState("keyed", stored.stamp, share, stored.keyed.full_bytes)

    def test_a_restored_task_builds_upon_what_it_read(self, account, stored):
        subtask = self.restored(account, self.restored_parts(account))
        assert tuple(stored.handles) == subtask.base
        assert account.ledger.served(LATEST, MAP) == subtask.served_at_start
        assert (subtask.log_bytes, subtask.from_bytes) == (0, 0), "none of it is a log"

    def test_when_all_keys_have_expired_its_log_is_empty(self, account, stored, monkeypatch):
        assert self.restored(account).log_bytes == SHARE_BYTES, "nothing was brought: its share"
        monkeypatch.setattr(stored, "handles", [])
        assert self.restored(account).log_bytes == 0

    def test_operators_that_had_finished_are_closed(self, account, monkeypatch):
        part = account.contents.checkpoints[LATEST][MAP]
        monkeypatch.setattr(part, "finished", True)
        assert self.restored(account) is not None, "they hold state"
        monkeypatch.setattr(part, "parts", ())
        assert self.restored(account) is None
        most = 2 * (SHARE_BYTES + VALUE_BYTES)
        account.state_taken(LATEST, MAP, snapshot(("1.sst", most)))
        assert facts(account) == []
        account.state_taken(LATEST, MAP, snapshot(("1.sst", most + 1)))
        assert [f"it has {most + 1} bytes of state, and was restored as finished"] == facts(account)


class TestAges:
    """Keys live for 10 s: all those the job began with were written before it."""

    @pytest.fixture
    def expiring(self, account):
        subtask = of_subtask(account, ttl=Ttl(10 * 10**9), growth_bytes=100)
        subtask.ages = ((0, 1, 5000),)
        return subtask

    def facts_of(self, account, *ages):
        error = account._ttl_error(account._subtasks[MAP], ages, account.ledger.served(LATEST, MAP))
        return [] if error is None else [error]

    def test_keys_that_live_are_there(self, account, expiring):
        assert self.facts_of(account, (0, 1, 5000)) == []
        assert (account.now_ns, account.ledger.served(LATEST, MAP)) == expiring.last_check
        assert expiring.ages == ((0, 1, 5000),)

    def test_no_more_keys_are_young_than_were_written(self, account, expiring):
        served = account.ledger.served(LATEST, MAP)
        written = 100 * served + 2 * (served // 2 * VALUE_BYTES) + 302
        assert self.facts_of(account, (0, 1, 5000), (5, 5, written - 5000)) == []
        expiring.ages, expiring.last_check = ((0, 1, 5000),), (0, 0)
        (fact,) = self.facts_of(account, (0, 1, 5000), (5, 5, written - 5000 + 2))
        assert fact.count("have a last write after")

    def test_what_a_job_begins_with_was_written_before_it(self, account):
        """As the backend has it: evenly over the time that keys live."""
        job, ttl = account.context.scenario.job, Ttl(10 * 10**9)
        vertices = [
            replace(vertex, state=replace(vertex.state, ttl=ttl)) if vertex.state else vertex for vertex in job.vertices
        ]
        account = with_scenario(account, job=replace(job, vertices=tuple(vertices)))

        assert Expiry(ttl.after_ns, SHARE_BYTES, VALUE_BYTES).ages == account._initial_state(MAP).ages

    def test_live_state_is_what_has_not_expired(self, account, expiring):
        assert expiring.live_bytes(3, ((0, 1, 3), (1, 2, 4))) == 7
        assert expiring.added_bytes(3) == 300


class TestStamps:
    @pytest.fixture
    def account(self):
        account = with_journal(
            account_of(RestoredStates, stateful()), Entry(0, EventType.JOB_RESTORED, LATEST, number=1)
        )
        note_cuts(account, LATEST)
        for task in (MAP, MAP + 1):
            account.state_taken(LATEST, task, account.contents.checkpoints[LATEST][task].parts[0][0])
        return account

    def restore(self, account, *pieces, after=0, task=MAP):
        account.restored(LATEST, task, pieces, account.ledger.served(LATEST, task) + after)
        return facts(account)

    def own(self, account, task=MAP):
        stamp, size_bytes = account.parts[LATEST][account.names[task]]["keyed"]
        return RestoredState("keyed", stamp, ALL, size_bytes)

    def test_a_task_gets_its_own_state(self, account):
        assert self.restore(account, self.own(account)) == []
        assert str(self.own(account).stamp) == "map[0] at checkpoint 6"

    @pytest.mark.parametrize("after", [-1, 1])
    def test_a_task_goes_on_elsewhere(self, account, after):
        served = account.ledger.served(LATEST, MAP)
        assert [
            f"its state goes on as after {served + after} records, its checkpoint holds what {served} records did"
        ] == (self.restore(account, self.own(account), after=after))
