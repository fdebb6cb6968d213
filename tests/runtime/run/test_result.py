"""A result in a folder: every file whole, reread equal, never half written."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from sim.protocol.options import FailureReason
from sim.results.journal import Entry, Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import UNALIGNED, chain, scenario


@pytest.fixture(scope="module")
def result():
    return simulate(scenario(chain(1), UNALIGNED, seconds=1))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_failed_write_leaves_what_was_there(result, tmp_path, monkeypatch):
    """The disk fills up in the middle of a table: the old file stays whole, nothing half written lies beside it."""

    def full(_self, path, **_options):
        Path(path).write_bytes(b"PAR1 half of")
        raise OSError("no space left on device")

    result.write(tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        result.write(tmp_path)

    assert before == contents(tmp_path)


@pytest.mark.parametrize(
    ("actions", "rescales", "count"), [(1, [], 1), (0, [True], 1), (0, [False, True], 1), (0, [], 0), (0, [False], 0)]
)
def test_what_was_asked_in_vain_is_told_where_users_asked(result, actions, rescales, count):
    """Savepoints and stops, those of a rescale as well; a checkpoint that the coordinator skips was asked for by nobody."""
    reason = next(iter(FailureReason))
    wishes = SimpleNamespace(
        actions=("a savepoint",) * actions, rescale=[SimpleNamespace(savepoint=own) for own in rescales]
    )
    journal = [
        Entry(10**9, Happening.REFUSED, number=1, detail=reason.name),
        Entry(2 * 10**9, Happening.REFUSED, detail=reason.name),
    ]
    found = replace(result, scenario=wishes, journal=journal).refused

    assert count == len(found)
    assert all(reason.text.rstrip(".") in sentence for sentence in found)
