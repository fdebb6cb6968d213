"""Values that Flink reports for what it does not know: whatever stands for it, nothing is computed from it.

An answer with -1 in a field says the same as one with Long.MIN_VALUE, Long.MAX_VALUE, null or NaN there: if any printed
number came from a stand-in, the texts would differ.
"""

import json
from collections import Counter

import pytest

from sim.jobs.evidence.prediction import observed
from sim.jobs.history.explanation import answer, answer_text, plain
from sim.jobs.history.reading import history_of
from sim.jobs.reading import infer, read_source, recorded_job
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from tests.places import DATA, REST

FIELDS = (
    ("latest_ack_timestamp", "end_to_end_duration", "state_size"),
    ("checkpointed_size", "processed_data", "persisted_data", "alignment_buffered", "processed", "persisted"),
    ("ack_timestamp", "start_delay", "duration", "sync", "async"),
    ("end-time", "now", "CREATED", "INITIALIZING", "RUNNING"),
    ("read-records", "write-records", "read-bytes", "write-bytes"),
    ("accumulated-busy-time", "accumulated-idle-time", "accumulated-backpressured-time"),
)
STAND_INS = (-(2**63), 2**63 - 1, None, "NaN")


def replaced(value, fields, stand_in, every=2):
    """The answer with a stand-in in every second occurrence of these fields, and which of them it has."""
    seen = Counter()

    def walk(value):
        if isinstance(value, list):
            return [walk(part) for part in value]
        if not isinstance(value, dict):
            return value
        found = {}
        for key, part in value.items():
            if key in fields and isinstance(part, int | float) and not isinstance(part, bool):
                seen[key] += 1
                found[key] = stand_in if seen[key] % every else part
            else:
                found[key] = walk(part)
        return found

    return walk(value), set(seen)


def printed(snapshot):
    """What `explain`, its JSON, `import` and the observations say."""
    told = answer(history_of(snapshot))
    table = observed(recorded_job(snapshot, "job"))
    return answer_text(told), json.dumps(plain(told)), str(infer(snapshot).document), table.to_csv()


@pytest.fixture(scope="module")
def snapshot():
    return read_saved(REST / "pressed.zip")


@pytest.mark.parametrize("fields", FIELDS, ids=lambda fields: fields[0])
def test_nothing_is_derived_from_a_stand_in(snapshot, fields):
    answers, seen = replaced(dict(snapshot.answers), fields, -1)
    assert set(fields) == seen
    unknown = printed(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples, snapshot.missing))

    assert ["-1" in text.split() or "-1 B" in text for text in unknown[:2]] == [False, False]
    for stand_in in STAND_INS:
        answers, _ = replaced(dict(snapshot.answers), fields, stand_in)
        assert unknown == printed(
            RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples, snapshot.missing)
        ), stand_in


def test_a_log_has_no_size_of_what_was_written():
    table = observed(recorded_job(read_source([DATA / "reports" / "br10a" / "jobmanager-mixed.log"])))

    assert "checkpointed_size" not in set(table["quantity"])
    assert (table[table["checkpoint"] >= 0]["value"] >= 0).all()
