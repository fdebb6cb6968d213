"""Values as JSON has them."""

import math

from sim.results.formats import json_ready


def test_numbers_that_are_none_become_null_however_deep_they_stand():
    """Keys are texts, tuples are lists, and all else stays as it is."""
    value = {
        ("30 s", "aligned"): (math.nan, 1.5, -math.inf),
        7: [{"a": math.inf, "b": None, "c": "x", "d": True, "e": 3}],
    }

    assert json_ready(value) == {
        "('30 s', 'aligned')": [None, 1.5, None],
        "7": [{"a": None, "b": None, "c": "x", "d": True, "e": 3}],
    }
