"""Laws 85 and 86: files that hold a snapshot's state."""

from sim.invariants.cuts import gap, missing_log_error, missing_state_error


def test_a_log_goes_on_from_the_materialisation_to_the_cut():
    """The first file may begin earlier; order does not matter."""
    assert gap([(30, 10), (20, 15)], 10, 30) is None
    assert gap([], 10, 10) is None


def test_the_first_gap_of_a_log():
    assert gap([(30, 10)], 10, 30) == (10, 20), "its oldest file"
    assert gap([(20, 10), (30, 5)], 10, 30) == (20, 25), "one in the middle"
    assert gap([(25, 15)], 10, 30) == (25, 30), "its tail"
    assert gap([], 0, 30) == (0, 30)


def test_the_gap_is_told_in_bytes():
    fact = missing_log_error((10, 20), 10)

    assert (
        fact
        == "10 bytes of its changelog are in no file: the positions 10 to 20 (the materialisation holds everything before 10)"
    )


def test_files_hold_the_live_bytes():
    """Merged tables have expected sizes, and the last entries are rounded off."""
    assert missing_state_error(900, 1000, 0) is None
    assert missing_state_error(700, 1000, 100) is None
    assert missing_state_error(699, 1000, 100) == "its files hold 699 bytes for 1000 of state"
