"""The scenario of whatever was read."""

import pytest

from sim.jobs.reading import to_document


def test_what_is_neither_recorded_nor_measured_has_no_scenario():
    """A new kind of recorded job has to say here how its scenario is made."""
    with pytest.raises(TypeError, match="no scenario is made of a str"):
        to_document("a job")
