"""The journal: rows in the order they were noted, one checkpoint's story out of them."""

import json
import pickle
from copy import deepcopy
from pathlib import Path

import pytest

import sim
from sim.results.journal import Entry, EventType, Journal
from sim.results.tables import CheckpointStats


def journal():
    rows = Journal()
    rows.note(10, EventType.TRIGGERED, 1)
    rows.note(20, EventType.TRIGGERED, 2)
    rows.note(20, EventType.STATE_WRITTEN, 1, task=3, number=512)
    rows.note(15, EventType.ABORTED, 1, detail="CHECKPOINT_EXPIRED")
    return rows


def test_rows_stand_in_the_order_they_were_noted():
    """Append-only: what happened at one time keeps its order, nothing is sorted afterwards."""
    assert [row.time_ns for row in journal()] == [10, 20, 20, 15]
    assert Entry(20, EventType.STATE_WRITTEN, 1, 3, 512, "") == journal()[2]


def test_a_row_is_plain_json():
    """Kept as a line of text: the happening is its own words."""
    assert json.loads(json.dumps(journal()[2])) == [20, "state written", 1, 3, 512, ""]


def test_a_subtask_s_record_is_made_when_first_asked_for():
    """The same record afterwards, with persisted data the sum of both ends."""
    stats = CheckpointStats(1, 0, tasks=2)
    stats.of(5).captured_input_bytes = 30
    stats.of(5).captured_output_bytes = 4

    assert list(stats.subtasks) == [5]
    assert stats.of(5).persisted_bytes == 34


def test_packed_records_of_subtasks_are_what_they_were():
    """Those of a checkpoint of long ago are packed: who reads makes copies, who writes has them at hand again."""
    stats = CheckpointStats(1, 0, tasks=3)
    for task in (2, 0):
        stats.of(task).ack_ns, stats.of(task).aborted = 10**12 + task, task == 2
    before = deepcopy(dict(stats.subtasks))
    stats.pack()

    assert before == stats.subtasks
    assert list(stats.subtasks) == [2, 0]
    assert stats.subtasks[0] is not stats.subtasks[0]
    stats.of(0).state_bytes = 7
    assert (stats.subtasks[0].state_bytes, stats.subtasks[2].aborted) == (7, True)
    stats.pack()
    assert stats.subtasks[0].state_bytes == 7


def test_a_long_journal_is_compressed_and_reads_as_it_was_noted():
    entries = [
        Entry(1000 * i, EventType.ACKNOWLEDGED, i // 24, i % 24, i % 7, "last" if i == 9999 else "")
        for i in range(10_000)
    ]
    rows = Journal(entries)

    assert entries == list(rows)
    assert [entries[i] for i in (0, 4095, 4096, 9999, -1, -10_000, 17)] == [
        rows[i] for i in (0, 4095, 4096, 9999, -1, -10_000, 17)
    ]
    assert [entry for entry in entries if entry.checkpoint == 170] == rows.entries_of(170)
    assert [*range(4080, 4104)] == list(rows.positions()[170])
    assert rows == Journal(entries)
    assert rows != Journal([*entries[:5], entries[5]._replace(number=9), *entries[6:]])
    assert len(pickle.dumps(Journal(entries))) < 10_000 * 12  # 40 bytes in columns
    with pytest.raises(IndexError):
        rows[10_000]


def test_every_kind_of_entry_is_noted_by_somebody():
    """A member that nobody notes would promise an entry that never comes."""
    runtime = Path(sim.__file__).parent / "runtime"
    # who observes reads them
    hosts = "".join(path.read_text() for path in runtime.rglob("*.py") if path.parent.name != "observe")

    assert [member.name for member in EventType if f"EventType.{member.name}" not in hosts] == []


def test_entries_are_found_by_place_from_either_end():
    """Kept in columns: a detail belongs to its own entry only."""
    rows = journal()

    assert list(rows) == [rows[i] for i in range(4)] == rows[:] == [*rows[:1], *rows[-3:]]
    assert [rows[-1].detail, rows[-2].detail] == ["CHECKPOINT_EXPIRED", ""]
    assert [rows[i] for i in (3, 2, 1, 0)] == list(reversed(rows))


def test_journals_are_equal_if_all_entries_are():
    other = journal()
    other.note(30, EventType.COMPLETED, 2)

    assert journal() == Journal(list(journal()))
    assert journal() != other
    assert journal() != Journal([*list(journal())[:-1], journal()[-1]._replace(detail="")])


def test_entries_of_some_kinds():
    """In order, with their details, over packed blocks too."""
    kinds = EventType.TRIGGERED, EventType.COMPLETED, EventType.ABORTED
    rows = Journal((at, kinds[at % 3], at, -1, 0, "late" * (at % 5 == 0)) for at in range(10_000))
    chosen = {EventType.TRIGGERED, EventType.ABORTED}

    assert [row for row in rows if row.event_type in chosen] == list(rows.only(chosen))
