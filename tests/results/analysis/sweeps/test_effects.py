"""Which of the varied keys matters."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_effects import _of_values, effects


def table(rows):
    return pd.DataFrame(rows).assign(status="ok", strategy="aligned")


def grid(function):
    points = product(("1 s", "2 s", "10 s"), "01", "01")
    return table([{"a": a, "b": b, "c": c, "y": function(int(a[:-2]), int(b), int(c))} for a, b, c in points])


def test_what_matters_only_together():
    """Exclusive or: neither key alone says anything, both together everything."""
    found = effects(grid(lambda a, b, c: float(b != c)), ["a", "b", "c"], "y").set_index("axis")

    assert pytest.approx(found.loc["b", "first"]) == 0
    assert pytest.approx(found.loc[["b", "c", "a"], "total"]) == [1, 1, 0]


def test_a_grid_that_lacks_combinations_tells_first_effects():
    """y = a + 2 b of 3 x 4 x 5 combinations but one; c has next to no effect."""
    points = list(product("123", "1234", "12345"))[1:]
    rows = table([{"a": a, "b": b, "c": c, "y": int(a) + 2 * int(b)} for a, b, c in points])
    found = effects(rows, ["a", "b", "c"], "y").set_index("axis")

    assert pytest.approx(found.loc[["a", "b", "c"], "first"], abs=0.06) == [2 / 17, 15 / 17, 0.0]
    assert found["total"].isna().all()


def test_a_point_per_value_tells_nothing():
    """Any two points differ; with a second point of each value it shows whether values do."""
    assert _of_values(pd.Series(["1 s", "2 s"]), pd.Series([1.0, 5.0])) == 0.0
    assert pytest.approx(_of_values(pd.Series(["1 s", "1 s", "2 s", "2 s"]), pd.Series([1.0, 1.0, 5.0, 5.0]))) == 1.0


def test_a_key_with_one_value_is_no_axis():
    found = effects(grid(lambda a, b, c: a + b).assign(d="8 MB"), ["a", "b", "c", "d"], "y")

    assert sorted(found["axis"]) == ["a", "b", "c"]
    assert found["axis"].tolist()[:2] == ["a", "b"]  # the largest first


@pytest.mark.parametrize("function", [lambda *_: 3.0, lambda *_: np.nan])
def test_where_nothing_varies_nothing_matters(function):
    assert effects(grid(function), ["a", "b", "c"], "y").empty
