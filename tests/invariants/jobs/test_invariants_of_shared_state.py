"""Invariants 36, 37, 39 and 40: chains of job instances against a naive model that recomputes who needs which file from scratch."""

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sim.model.storage import Directories, StateFile
from sim.protocol.snapshot_store import (
    DeleteDirectory,
    FailedOver,
    LoseAcknowledgement,
    SnapshotCompleted,
    SnapshotDiscarded,
    SnapshotStore,
    SnapshotTriggered,
    StateRegistered,
    restorable,
    verdict,
)

TASKS = (0, 1)
EVERYWHERE = (
    Directories(),
    Directories("relative-to-metadata"),
    Directories("relative-to-job"),
    Directories(create_subdir=False),
)


class Backend:
    """One task's state: live files have names; a name found in the newest notified checkpoint is not written again (E.2)."""

    def __init__(self):
        self.live = {0, 1, 2}
        self.base = {}  # name -> file of the last completed and notified checkpoint
        self.written = {}  # checkpoint -> name -> file


class Chain(RuleBasedStateMachine):
    """Tasks, coordinator and file system played by hand; the store under test says what to delete."""

    completed = 0  # checkpoints and savepoints of all chains of an invariant

    @initialize(num_retained=st.integers(1, 2))
    def begin(self, num_retained):
        self.num_retained = num_retained
        self.storage = {}  # key -> file: what exists
        self.numbers = defaultdict(int)  # instance -> files written
        self.instance, self.last, self.store = 0, 0, SnapshotStore()
        self.claim, self.origin = "claim", None  # how this instance began
        self.backends = {task: Backend() for task in TASKS}
        self.under_way = {}  # pending checkpoint -> (type, tasks that have not acknowledged)
        self.aborted = {}  # likewise
        self.named = defaultdict(set)  # file -> checkpoints of this instance that named it: the whole history
        self.found = set()  # what existed when this instance began
        self.lost = set()  # written, and named by no acknowledgement that counts: nobody will delete it
        self.contents = {}  # (instance, checkpoint) -> task -> name -> file

    # -------------------------------------------------------------------------------------- what happens

    @rule(kind=st.sampled_from(["checkpoint", "checkpoint", "native", "canonical"]))
    def trigger(self, kind):
        self.start(kind)

    @rule(data=st.data())
    @precondition(lambda self: self.under_way)
    def acknowledge(self, data):
        checkpoint = data.draw(st.sampled_from(sorted(self.under_way)))
        self.hear(checkpoint, data.draw(st.sampled_from(sorted(self.under_way[checkpoint][1]))))

    @rule(data=st.data())
    @precondition(lambda self: self.aborted)
    def acknowledge_late(self, data):
        checkpoint = data.draw(st.sampled_from(sorted(self.aborted)))
        kind, tasks = self.aborted[checkpoint]
        task = data.draw(st.sampled_from(sorted(tasks)))
        self.aborted = {n: (k, left - {task} if n == checkpoint else left) for n, (k, left) in self.aborted.items()}
        self.aborted = {n: (k, left) for n, (k, left) in self.aborted.items() if left}
        self.register(checkpoint, kind, task)

    @rule(data=st.data())
    @precondition(lambda self: self.under_way)
    def abort(self, data):
        self.give_up(data.draw(st.sampled_from(sorted(self.under_way))))

    @rule(notified=st.booleans())
    def one_goes_through(self, notified):
        """Most checkpoints do."""
        for older in [n for n, (kind, _) in self.under_way.items() if kind in ("checkpoint", "full")]:
            self.give_up(older)
        checkpoint = self.start("checkpoint")
        for task in TASKS:
            if checkpoint in self.under_way:
                self.hear(checkpoint, task)
        if notified and checkpoint in self.store.retained:
            self.notify(checkpoint)

    @rule()
    @precondition(lambda self: self.retained_here())
    def notify_latest(self):
        self.notify(max(self.retained_here()))

    @rule(task=st.sampled_from(TASKS), gone=st.integers(1, 2))
    def compact(self, task, gone):
        """Some live files are replaced by a new one."""
        live = self.backends[task].live
        self.backends[task].live = {*sorted(live)[gone:], max(live) + 1}

    @rule(task=st.sampled_from(TASKS))
    def flush(self, task):
        if len(live := self.backends[task].live) < 5:
            live.add(max(live) + 1)

    @rule(data=st.data())
    @precondition(lambda self: self.store.retained)
    def fail_over(self, data):
        """From the newest; or, had that never completed, from an older one that is held."""
        checkpoint = data.draw(st.sampled_from(sorted(self.store.retained)))
        for pending in list(self.under_way):
            self.give_up(pending)
        self.dispatch(FailedOver(checkpoint))
        self.load(self.store.retained[checkpoint])

    @rule(data=st.data(), claim=st.sampled_from(["claim", "no-claim", "legacy"]))
    @precondition(lambda self: self.store.retained or self.store.savepoints)
    def next_instance(self, data, claim):
        """A new job from a retained checkpoint or a savepoint; the old one is gone."""
        chosen = data.draw(st.sampled_from([*self.store.retained.values(), *self.store.savepoints]))
        self.instance += 1
        self.last, self.claim, self.origin = chosen.checkpoint, claim, chosen
        self.store = SnapshotStore.restored(self.instance, chosen, claim)
        self.under_way, self.aborted, self.named, self.found = {}, {}, defaultdict(set), set(self.storage)
        self.load(chosen)

    # -------------------------------------------------------------------------------------- how it happens

    def start(self, kind):
        self.last += 1
        chosen = self.store.type_for(kind)
        self.dispatch(SnapshotTriggered(self.last, chosen))
        self.under_way[self.last] = (chosen, set(TASKS))
        return self.last

    def hear(self, checkpoint, task):
        kind, missing = self.under_way[checkpoint]
        missing.remove(task)
        if not self.register(checkpoint, kind, task):
            self.give_up(checkpoint)  # it expires: a notice was lost, and what the task builds on is registered no more
        elif not missing:
            self.complete(checkpoint, kind)

    def register(self, checkpoint, kind, task):
        """Whether the acknowledgement counts."""
        files = self.write(checkpoint, kind, task)
        known = LoseAcknowledgement(checkpoint) not in self.dispatch(StateRegistered(checkpoint, files))
        for file in files if known else ():
            if file.scope == "shared" or file.checkpoint != checkpoint:
                self.named[file].add(checkpoint)
        if not known:
            self.lost |= {file.key for file in files if (file.instance, file.checkpoint) == (self.instance, checkpoint)}
        return known

    def write(self, checkpoint, kind, task):
        """The files one task names; new ones exist from now on."""
        backend, files = self.backends[task], {}
        savepoint = kind in ("native", "canonical")
        if kind != "canonical":
            base = backend.base if kind == "checkpoint" else {}
            files = {
                name: base.get(name) or self.new(checkpoint, "savepoint" if savepoint else "shared")
                for name in backend.live
            }
        backend.written[checkpoint] = files
        return (*files.values(), self.new(checkpoint, "savepoint" if savepoint else "exclusive"))

    def new(self, checkpoint, scope):
        self.numbers[self.instance] += 1
        file = StateFile(self.instance, self.numbers[self.instance], checkpoint, scope, 100)
        self.storage[file.key] = file
        return file

    def complete(self, checkpoint, kind):
        type(self).completed += 1
        del self.under_way[checkpoint]
        self.dispatch(SnapshotCompleted(checkpoint))
        self.contents[self.instance, checkpoint] = {
            task: dict(backend.written[checkpoint]) for task, backend in self.backends.items()
        }
        if kind in ("native", "canonical"):
            self.savepoint_completed(self.store.savepoints[-1])
            return
        while len(self.store.retained) > self.num_retained:
            self.dispatch(SnapshotDiscarded(min(self.store.retained)))
        for older in [
            n for n, (other, _) in self.under_way.items() if n < checkpoint and other in ("checkpoint", "full")
        ]:
            self.give_up(older)
        if kind == "full":
            # with this notice lost, as in Flink, the next checkpoint would build on foreign files again
            self.notify(checkpoint)
        self.checkpoint_completed(self.store.retained[checkpoint])

    def give_up(self, checkpoint):
        kind, missing = self.under_way.pop(checkpoint)
        if missing:
            self.aborted[checkpoint] = (kind, missing)
        self.dispatch(SnapshotDiscarded(checkpoint))

    def notify(self, checkpoint):
        for backend in self.backends.values():
            if checkpoint in backend.written:
                backend.base = backend.written[checkpoint]

    def load(self, snapshot):
        """The tasks begin from a snapshot; a canonical savepoint's keys are inserted anew."""
        stored = self.contents[snapshot.instance, snapshot.checkpoint]
        for task in TASKS:
            self.backends[task] = backend = Backend()
            if snapshot.type != "canonical":
                backend.live, backend.base = set(stored[task]), dict(stored[task])

    def dispatch(self, event):
        self.store, commands = self.store.on(event)
        for command in commands:
            for file in () if isinstance(command, LoseAcknowledgement) else command.files:
                self.storage.pop(file.key, None)
            if isinstance(command, DeleteDirectory):
                assert command.checkpoint == event.checkpoint
        return commands

    def retained_here(self):
        return {n: snapshot for n, snapshot in self.store.retained.items() if snapshot.instance == self.instance}

    def restorable(self):
        """Every snapshot somebody may still want to restore."""
        return [*self.store.retained.values(), *self.store.savepoints, *filter(None, [self.store.unclaimed])]

    def checkpoint_completed(self, snapshot):
        """For the invariants."""

    def savepoint_completed(self, snapshot):
        """For the invariants."""


class Invariant36(Chain):
    @invariant()
    def nothing_needed_is_deleted(self):
        """Files of retained checkpoints, of acknowledgements of pending ones, of savepoints, of what was not claimed."""
        if hasattr(self, "storage"):
            needed = [
                file for snapshot in (*self.restorable(), *self.store.pending.values()) for file in snapshot.files
            ]

            assert [file for file in needed if file.key not in self.storage] == []

    @invariant()
    def nothing_foreign_is_deleted(self):
        """Without a claim everything that was there stays there."""
        if hasattr(self, "storage") and self.claim != "claim":
            assert self.found <= set(self.storage)

    def checkpoint_completed(self, snapshot):
        """After a subsumption only files stay that a checkpoint from the lowest retained on named (failed ones included)."""
        if len(self.store.retained) < self.num_retained:
            return
        lowest = min(self.store.retained)
        mine = {key for key in self.storage if key[0] == self.instance}
        if self.claim == "claim" and self.origin is not None:
            mine |= {file.key for file in self.origin.files} & set(self.storage)
        needed = {file.key for file, checkpoints in self.named.items() if max(checkpoints) >= lowest}
        needed |= {
            file.key for snapshot in (*self.restorable(), *self.store.pending.values()) for file in snapshot.files
        }
        if (
            self.origin is not None
            and self.origin.type == "native"
            and any(file.key in needed for file in self.origin.files)
        ):
            needed |= {file.key for file in self.origin.files}  # one directory, kept or deleted as a whole

        assert mine <= needed | self.lost


class Invariant37(Chain):
    def checkpoint_completed(self, snapshot):
        if self.claim == "no-claim" and self.origin is not None:
            assert {self.instance} == {file.instance for file in snapshot.files}
            assert verdict(snapshot, Directories()).files_outside_job_dir == 0

    @invariant()
    def the_restored_snapshot_stays_before(self):
        if (
            hasattr(self, "storage")
            and self.claim == "no-claim"
            and self.origin is not None
            and not self.retained_here()
        ):
            assert restorable(self.origin, Directories(), exists=self.exists)

    def exists(self, file):
        return file.key in self.storage


class Invariant39(Chain):
    def savepoint_completed(self, snapshot):
        for directories in EVERYWHERE:
            judged = verdict(snapshot, directories)

            assert (judged.files_outside_chk_dir, judged.absolute_paths) == (0, 0)
            assert judged.self_contained
            assert judged.relocatable_own_dir

    def checkpoint_completed(self, snapshot):
        """Shared files have absolute paths: a copy of everything works only as long as the old root is there."""
        for everything in ("/checkpoints", "/checkpoints/job-" + str(self.instance)):
            assert not restorable(snapshot, Directories(), copied=everything)
        assert not verdict(snapshot, Directories()).relocatable_own_dir


class Invariant40(Chain):
    @rule(data=st.data())
    @precondition(lambda self: self.storage)
    def lose(self, data):
        """What each snapshot would restore, with and without one file."""
        lost = data.draw(st.sampled_from(sorted(self.storage)))
        for snapshot in self.restorable():
            for directories in EVERYWHERE:
                before = restorable(snapshot, directories, exists=lambda file: file.key in self.storage)
                after = restorable(
                    snapshot, directories, exists=lambda file: file.key in self.storage and file.key != lost
                )

                assert before
                assert after == (lost not in {file.key for file in snapshot.files})


def judged(invariant):
    """Let chains happen, and count what completed in them: an invariant says something of that."""
    invariant.completed = 0
    run_state_machine_as_test(invariant, settings=settings(stateful_step_count=40))
    return invariant.completed


def test_invariant_36_a_shared_file_lives_as_long_as_a_checkpoint_names_it():
    """Never deleted too early, never kept too long, never touched where it is somebody else's."""
    assert judged(Invariant36) > 0


def test_invariant_37_without_a_claim_nothing_outside_is_needed_after_the_first_checkpoint():
    """Until then the restored snapshot stays."""
    assert judged(Invariant37) > 0


def test_invariant_39_savepoints_can_be_moved_and_incremental_checkpoints_cannot():
    """Whatever the directories; with absolute paths the old root must remain readable."""
    assert judged(Invariant39) > 0


def test_invariant_40_a_file_nobody_names_is_not_missed():
    """And one that a snapshot names is missed by that snapshot."""
    assert judged(Invariant40) > 0
