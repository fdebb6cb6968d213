"""A difference of pairs as text."""

from sim.analysis.number_texts import change_text
from sim.analysis.paired import PairedChange


def test_a_change_of_changes_has_one_sign():
    """The text of a relative change has a sign already."""
    assert "-0.7 % ± 0.2 %" == PairedChange(-0.007, 0.002).text(change_text)
    assert "+0.7 %" == PairedChange(0.007, 0.0).text(change_text)
