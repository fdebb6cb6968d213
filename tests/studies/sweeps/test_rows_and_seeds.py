"""What a sweep reads of many rows, and which seeds stand apart."""

from types import SimpleNamespace

import pandas as pd
import pytest

from sim.app.verbs.sweep import Sweep
from sim.studies.plan import cells, with_baselines
from sim.studies.sweeps import run as room
from sim.studies.sweeps.results import read_results, write_and_read_results
from sim.studies.sweeps.store import Store
from sim.studies.sweeps.sweep_file import _seeds
from tests.studies.sweeps.test_results import row


@pytest.mark.parametrize(
    ("seeds", "keys", "apart"),
    [
        ([1, 100], ["run.seed"], [1, 100]),
        ([0, 2**31 - 1], ["run.seed"], [0, 2**31 - 1]),
        ([1, 2**31], ["run.seed"], []),
        ([-1, 1], ["run.seed"], []),
        ([1], ["run.seed"], []),
        ([1, 1], ["run.seed"], []),
        ([1, "2"], ["run.seed"], []),
        ([True, 2], ["run.seed"], []),
        ([1, 2], ["run.seed", "run"], []),
        (None, ["checkpoint.interval"], []),
    ],
)
def test_seeds_stand_apart_where_they_are_different_whole_numbers(seeds, keys, apart):
    """Any other list is an axis like all."""
    assert apart == _seeds({} if seeds is None else {"run.seed": seeds}, keys)


def test_texts_of_selected_columns_are_categories_and_numbers_are_numbers(study, tmp_path):
    """In the order of the table; the names of cells are all different, and plain."""
    store, planned = Store(tmp_path), with_baselines(cells(study.scenarios))
    store.put([row(cell, 100.0 + number) for number, cell in enumerate(planned)])
    complete = write_and_read_results(store, planned)
    found = read_results(tmp_path, ["throughput_per_second", "strategy", "cell"])

    assert (
        ["cell", "strategy", "throughput_per_second"]
        == [name for name in complete.columns if name in found.columns]
        == list(found.columns)
    )
    assert [isinstance(kind, pd.CategoricalDtype) for kind in found.dtypes] == [False, True, False]
    assert all(list(found[name]) == list(complete[name]) for name in found.columns)


def test_of_many_rows_those_columns_are_read_that_an_answer_is_made_of(monkeypatch, tmp_path):
    """A percentile is read with what counts its sample, and the columns of limits and axes."""
    question = SimpleNamespace(
        show=["end_to_end_p99_ms"], limits=[SimpleNamespace(column="lag_s")], least="throughput_per_second"
    )
    scenarios = SimpleNamespace(values=lambda: ["checkpoint.interval"])
    monkeypatch.setattr(room, "read_results", lambda _, columns=None: columns and set(columns))

    def read(count, **changes):
        definition = SimpleNamespace(question=question, scenarios=scenarios)
        return room.read_rows(SimpleNamespace(**(vars(definition) | changes)), tmp_path, count)

    needed = {
        "end_to_end_p99_ms",
        "completed",
        "lag_s",
        "throughput_per_second",
        "checkpoint.interval",
        *room._REQUIRED_COLUMNS,
    }
    assert read(room.MAX_COMPLETE) is None
    assert needed == read(room.MAX_COMPLETE + 1)
    assert {"checkpoint.interval", *room._REQUIRED_COLUMNS} == read(room.MAX_COMPLETE + 1, question=None)


@pytest.mark.parametrize("question", [None, "asked"])
def test_a_sweep_without_a_question_says_why_it_has_no_answer(question, tmp_path):
    rows = pd.DataFrame({"status": ["ok", "error", "ok"]})
    counted = Sweep(SimpleNamespace(question=question), rows, tmp_path).counted

    assert counted.startswith(f"2 of 3 cells have a row in {tmp_path / 'results.parquet'}")
    assert (question is None) == ("for an answer, add answer:" in counted)
