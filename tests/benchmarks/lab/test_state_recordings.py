"""State of real Flink, checkpoint by checkpoint: what was written, what is referred to, when the compactions show."""

from functools import cache

import pandas as pd
import pytest

from benchmarks.lab import read
from sim.jobs.reading import to_document
from sim.jobs.source.recorded_job import checkpoints_table
from tests.places import RECORDINGS
from tests.scenarios import run_scenario

ROCKSDB = RECORDINGS / "rocksdb-incremental-p2-aligned.json.gz"


@cache
def simulated(path):
    found = to_document(read(path))
    return run_scenario(found.text)


def both(path, column):
    """(observed, predicted) of each checkpoint that was completed."""
    recorded, predicted = checkpoints_table(read(path).checkpoints.list), simulated(path).checkpoints
    observed = recorded[recorded["status"] == "COMPLETED"].set_index("id")[column]
    return pd.DataFrame({"observed": observed, "predicted": predicted.set_index("id")[column].reindex(observed.index)})


@pytest.mark.parametrize(("column", "error"), [("checkpointed_size", 0.05), ("state_size", 0.05)])
def test_rocksdb_writes_and_holds_what_was_recorded(column, error):
    """Each checkpoint within 5 %, from 3 MB to 44 MB, the first one too."""
    sizes = both(ROCKSDB, column)

    assert len(sizes) >= 12
    assert (sizes["predicted"] / sizes["observed"] - 1).abs().max() <= error


def test_rocksdb_compactions_show_when_they_did():
    """Level 0 has four files with every fourth checkpoint: the next one writes the whole state, the others three megabytes."""
    sizes = both(ROCKSDB, "checkpointed_size")

    assert (
        [1, 4, 8, 12]
        == sizes.index[sizes["observed"] > 20e6].tolist()
        == sizes.index[sizes["predicted"] > 20e6].tolist()
    )


def test_rocksdb_uploads_take_what_they_took():
    """A latency each for the stream of columns, the new tables, the other files, the operator's: within 15 % of about 1 s or 2.9 s."""
    times = both(ROCKSDB, "end_to_end_duration").iloc[1:]
    off = (times["predicted"] / times["observed"] - 1).abs()

    assert off.max() <= 0.15
    assert off.median() <= 0.08


def test_rocksdb_writes_as_many_files():
    """One operator file of each subtask; of a stateful one the stream of columns, new tables and three more."""
    events = read(ROCKSDB).event_table("fs_write")
    started = checkpoints_table(read(ROCKSDB).checkpoints.list).set_index("id")["trigger_timestamp"]
    recorded = events[~events["file"].str.startswith("_") & (events["node"] != "job")]
    ends = [*started[1:], started.iloc[-1] + 5000]
    observed = {
        number: int(
            ((recorded["t"] >= begin) & (recorded["t"] < end) & ~recorded["thread"].str.contains("jobmanager")).sum()
        )
        for (number, begin), end in zip(started.items(), ends, strict=True)
    }
    files = simulated(ROCKSDB).tables["files"]
    predicted = files[files["scope"] != "metadata"].groupby("checkpoint").size()

    assert {number: observed[number] for number in range(2, 13)} == {
        number: int(predicted[number]) for number in range(2, 13)
    }
