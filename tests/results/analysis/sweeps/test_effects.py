"""Which of the varied keys matters."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_effects import _of_slices, effects


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


def test_a_sample_tells_first_effects():
    """A known function (y = x + 2 z, z is 4/5 of the variance), within the precision of 256 points; noise has next to no effect."""
    random = np.random.default_rng(1)
    x, z, n = random.uniform(1, 2, (3, 256))
    found = effects(
        table(
            {
                "x": [f"{v:.6f} s" for v in x],
                "z": [f"{v:.6f} s" for v in z],
                "n": [f"{v:.6f} s" for v in n],
                "y": x + 2 * z,
            }
        ),
        ["x", "z", "n"],
        "y",
    ).set_index("axis")

    assert pytest.approx(found.loc[["x", "z", "n"], "first"], abs=0.08) == [0.2, 0.8, 0.0]
    assert found["total"].isna().all()


def test_a_point_per_slice_tells_nothing():
    """Any two points differ; with a second point in each slice it shows whether slices do."""
    assert _of_slices(pd.Series(["1 s", "2 s"]), pd.Series([1.0, 5.0])) == 0.0
    assert pytest.approx(_of_slices(pd.Series(["1 s", "1 s", "2 s", "2 s"]), pd.Series([1.0, 1.0, 5.0, 5.0]))) == 1.0


def test_a_key_with_one_value_is_no_axis():
    found = effects(grid(lambda a, b, c: a + b).assign(d="8 MB"), ["a", "b", "c", "d"], "y")

    assert sorted(found["axis"]) == ["a", "b", "c"]
    assert found["axis"].tolist()[:2] == ["a", "b"]  # the largest first


@pytest.mark.parametrize("function", [lambda *_: 3.0, lambda *_: np.nan])
def test_where_nothing_varies_nothing_matters(function):
    assert effects(grid(function), ["a", "b", "c"], "y").empty
