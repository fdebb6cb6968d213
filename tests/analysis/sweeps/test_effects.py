"""Which of the varied keys matters."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sim.analysis.sweeps.effects import effects


def table(rows):
    return pd.DataFrame(rows).assign(status="ok", strategy="aligned")


def grid(told):
    points = product(("1 s", "2 s", "10 s"), "01", "01")
    return table([{"a": a, "b": b, "c": c, "y": told(int(a[:-2]), int(b), int(c))} for a, b, c in points])


def test_a_sum_divides_its_variance():
    """Keys that do not meet: first and total are the same, and all of them make one; a key without effect has none."""
    told = effects(grid(lambda a, b, c: a + 3 * b), ["a", "b", "c"], "y").set_index("axis")

    assert told["first"].sum() == pytest.approx(1)
    assert told["first"].tolist() == pytest.approx(told["total"].tolist())
    assert 0 == pytest.approx(told.loc["c", "first"])
    assert np.var([1, 2, 10]) / (np.var([1, 2, 10]) + 2.25) == pytest.approx(told.loc["a", "first"])


def test_what_matters_only_together():
    """Exclusive or: neither key alone says anything, both together everything."""
    told = effects(grid(lambda a, b, c: float(b != c)), ["a", "b", "c"], "y").set_index("axis")

    assert 0 == pytest.approx(told.loc["b", "first"])
    assert [1, 1, 0] == pytest.approx(told.loc[["b", "c", "a"], "total"])


def test_replications_are_no_effect():
    """Their spread is averaged away before anything is divided."""
    once = grid(lambda a, b, c: a)
    twice = pd.concat([once.assign(y=once["y"] + 5), once.assign(y=once["y"] - 5)])

    assert effects(once, ["a", "b", "c"], "y").equals(effects(twice, ["a", "b", "c"], "y"))


def test_a_sample_tells_first_effects():
    """Of a known function (y = x + 2 z, z is 4/5 of the variance), within what 256 points can say; of noise, next to nothing."""
    random = np.random.default_rng(1)
    x, z, n = random.uniform(1, 2, (3, 256))
    told = effects(table({"x": [f"{v:.6f} s" for v in x], "z": [f"{v:.6f} s" for v in z], "n": [f"{v:.6f} s" for v in n], "y": x + 2 * z}),
                   ["x", "z", "n"], "y").set_index("axis")  # fmt: skip

    assert [0.2, 0.8, 0.0] == pytest.approx(told.loc[["x", "z", "n"], "first"], abs=0.08)
    assert told["total"].isna().all()


@pytest.mark.parametrize("told", [lambda *_: 3.0, lambda *_: np.nan])
def test_where_nothing_varies_nothing_matters(told):
    assert effects(grid(told), ["a", "b", "c"], "y").empty
