"""Breaks of what snapshots hold: files that miss, logs with gaps, keys of the wrong age."""

from dataclasses import replace

from sim.storage.changelog import ChangelogBackend, Cohort, Expiry
from sim.storage.ledger import FileLedger
from sim.storage.state_backends import RocksDb
from tests.invariants.injection import around, injection

EXPIRING, SLOW = "expiring keys", "slow materialisations"


def oldest_of_the_log(frozen):
    logs = [handle for handle in frozen.reused if handle.name.startswith("log-")]
    return replace(frozen, reused=tuple(handle for handle in frozen.reused if handle not in logs[:1]))


@injection("changelog", "a snapshot does not name its oldest file of the log")
def _(patch):
    around(patch, ChangelogBackend, "take", lambda frozen, *_: oldest_of_the_log(frozen))


@injection("changelog", "the log is truncated at the end of a materialisation, not at its beginning", SLOW)
def _(patch):
    original = ChangelogBackend.materialised

    def materialised(backend, number, *args):
        backend._begun[number] = backend.end_bytes
        original(backend, number, *args)

    patch.setattr(ChangelogBackend, "materialised", materialised)


@injection("changelog", "a snapshot does not name the materialisation")
def _(patch):
    def change(frozen, *_):
        return replace(frozen, reused=tuple(handle for handle in frozen.reused if handle.name.startswith("log-")))

    around(patch, ChangelogBackend, "take", change)


@injection("files of a snapshot", "an incremental checkpoint does not name the tables that are stored")
def _(patch):
    around(patch, RocksDb, "take", lambda frozen, *_: replace(frozen, reused=frozen.reused[1:]))


@injection("files of a snapshot", "a file is named while it is being written")
def _(patch):
    original = FileLedger.close

    def close(ledger, stored, now):
        if stored.name[0] != "operator":
            original(ledger, stored, now)

    patch.setattr(FileLedger, "close", close)


def standing(patch, change):
    """What restored keys are told of their ages."""
    original = Expiry.stand
    patch.setattr(Expiry, "stand", lambda expiry, ages, now_ns: original(expiry, change(expiry, ages, now_ns), now_ns))


@injection(EXPIRING, "restored keys expire at once")
def _(patch):
    standing(patch, lambda *_: ())


@injection(EXPIRING, "restored keys are young again")
def _(patch):
    def anew(_, ages, now_ns):
        return (Cohort(now_ns, now_ns, sum(cohort.size_bytes for cohort in ages)),)

    standing(patch, anew)


@injection(EXPIRING, "restored keys live as long again as they have lived")
def _(patch):
    standing(
        patch,
        lambda expiry, ages, _: tuple(
            Cohort(b + expiry.ttl_ns // 2, e + expiry.ttl_ns // 2, size) for b, e, size in ages
        ),
    )


@injection(EXPIRING, "nothing expires")
def _(patch):
    patch.setattr(Expiry, "_expire", lambda *_: None)
