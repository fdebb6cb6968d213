"""Breaks of what snapshots hold: files that miss, logs with gaps, keys of the wrong age."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sim.storage.changelog import Ages, ChangelogBackend, Cohort, Expiry
from sim.storage.ledger import FileLedger, StoredFile
from sim.storage.state_backends import RocksDb
from sim.storage.state_files import FrozenState
from tests.invariants.injection import Patch, around, injection

EXPIRING, SLOW = "expiring keys", "slow materialisations"


def oldest_of_the_log(frozen: FrozenState) -> FrozenState:
    logs = [handle for handle in frozen.reused if handle.name.startswith("log-")]
    return replace(frozen, reused=tuple(handle for handle in frozen.reused if handle not in logs[:1]))


@injection("changelog", "a snapshot does not name its oldest file of the log")
def _(patch: Patch) -> None:
    around(patch, ChangelogBackend, "take", lambda frozen, *_: oldest_of_the_log(frozen))


@injection("changelog", "the log is truncated at the end of a materialisation, not at its beginning", SLOW)
def _(patch: Patch) -> None:
    original = ChangelogBackend.materialised

    def materialised(backend: ChangelogBackend, number: int, *args: Any) -> None:
        backend._begun[number] = backend.end_bytes
        original(backend, number, *args)

    patch.setattr(ChangelogBackend, "materialised", materialised)


@injection("changelog", "a snapshot does not name the materialisation")
def _(patch: Patch) -> None:
    def change(frozen: FrozenState, *_: object) -> FrozenState:
        return replace(frozen, reused=tuple(handle for handle in frozen.reused if handle.name.startswith("log-")))

    around(patch, ChangelogBackend, "take", change)


@injection("files of a snapshot", "an incremental checkpoint does not name the tables that are stored")
def _(patch: Patch) -> None:
    around(patch, RocksDb, "take", lambda frozen, *_: replace(frozen, reused=frozen.reused[1:]))


@injection("files of a snapshot", "a file is named while it is being written")
def _(patch: Patch) -> None:
    original = FileLedger.close

    def close(ledger: FileLedger, stored: StoredFile, now: int) -> None:
        if stored.name[0] != "operator":
            original(ledger, stored, now)

    patch.setattr(FileLedger, "close", close)


def standing(patch: Patch, change: Any) -> None:
    """What restored keys are told of their ages."""
    original = Expiry.stand
    patch.setattr(Expiry, "stand", lambda expiry, ages, now_ns: original(expiry, change(expiry, ages, now_ns), now_ns))


@injection(EXPIRING, "restored keys expire at once")
def _(patch: Patch) -> None:
    standing(patch, lambda *_: ())


@injection(EXPIRING, "restored keys are young again")
def _(patch: Patch) -> None:
    def anew(_: Expiry, ages: Ages, now_ns: int) -> Ages:
        return (Cohort(now_ns, now_ns, sum(cohort.size_bytes for cohort in ages)),)

    standing(patch, anew)


@injection(EXPIRING, "restored keys live as long again as they have lived")
def _(patch: Patch) -> None:
    standing(
        patch,
        lambda expiry, ages, _: tuple(
            Cohort(b + expiry.ttl_ns // 2, e + expiry.ttl_ns // 2, size) for b, e, size in ages
        ),
    )


@injection(EXPIRING, "nothing expires")
def _(patch: Patch) -> None:
    patch.setattr(Expiry, "_expire", lambda *_: None)
