"""The arithmetic of a consistent cut: what adds up is silent, what is lost or held twice is told in a sentence."""

import pytest

from sim.checkers.cut import ChannelCut, Cuts


def cuts(**of_channel_7: int | None) -> Cuts:
    """Checkpoint 3, channel 7."""
    rows = Cuts()
    rows.channels[3, 7] = ChannelCut(**of_channel_7)
    return rows


def told(rows: Cuts, *, completed: frozenset[int] = frozenset({3}), exactly_once: bool = True) -> list[str]:
    return list(rows.violations(set(completed), exactly_once=exactly_once))


@pytest.mark.parametrize(
    ("written", "consumed", "captured_input", "captured_output"),
    [(500, 500, 0, 0), (500, 200, 300, 0), (500, 200, 0, 300), (500, 200, 250, 50), (0, 0, 0, 0)],
)
def test_a_cut_that_adds_up_is_silent(written, consumed, captured_input, captured_output):
    """Consumed before the snapshot, captured at the reader or captured at the writer: each byte in one place."""
    rows = cuts(written=written, consumed=consumed, captured_input=captured_input, captured_output=captured_output)

    assert 0 == rows.of(3, 7).surplus
    assert [] == told(rows)


def test_loss_is_told():
    """40 of 500 bytes are nowhere."""
    rows = cuts(written=500, consumed=400, captured_input=50, captured_output=10)
    (sentence,) = told(rows)

    assert -40 == rows.of(3, 7).surplus
    assert sentence.startswith("checkpoint 3 loses 40 bytes of channel 7: ")
    assert "written=500" in sentence


def test_loss_is_told_at_least_once_too():
    """At least once allows duplicates, never losses."""
    assert ["loses 40 bytes"] == [" ".join(told(cuts(written=500, consumed=460), exactly_once=False)[0].split()[2:5])]


def test_duplication_is_told():
    """30 bytes are in the snapshot and in the in-flight data."""
    rows = cuts(written=500, consumed=480, captured_input=50)
    (sentence,) = told(rows)

    assert 30 == rows.of(3, 7).surplus
    assert sentence.startswith("checkpoint 3 holds 30 bytes of channel 7 twice: ")


def test_duplication_is_allowed_at_least_once():
    assert [] == told(cuts(written=500, consumed=530), exactly_once=False)


@pytest.mark.parametrize("known", [{"written": 500}, {"consumed": 500}, {}])
def test_half_a_cut_is_told(known):
    """A checkpoint must not complete before both ends of a channel took part: silence would pass for a proof."""
    rows = cuts(**known)
    (sentence,) = told(rows)

    assert rows.of(3, 7).surplus is None
    assert sentence.startswith("checkpoint 3 completed without a cut of channel 7")


def test_checkpoints_that_did_not_complete_are_not_judged():
    """An aborted checkpoint owes nothing."""
    assert [] == told(cuts(written=500, consumed=100), completed=frozenset({2, 4}))


def test_channels_and_checkpoints_are_judged_one_by_one():
    """A loss here does not make up for a duplicate there."""
    rows = Cuts()
    rows.channels = {(1, 0): ChannelCut(100, 90), (1, 1): ChannelCut(100, 110), (2, 0): ChannelCut(100, 100)}

    assert 2 == len(told(rows, completed=frozenset({1, 2})))


def test_an_entry_is_made_once():
    """Whoever comes first opens the row, the others fill it."""
    rows = Cuts()
    rows.of(1, 2).written = 5
    rows.of(1, 2).consumed = 5

    assert {(1, 2): ChannelCut(5, 5)} == rows.channels
