"""A snapshot that is kept and cannot be restored is told, with the files that are gone."""

from sim.invariants.files import RETAINED_FILES_LAW, KeptSnapshot, snapshot_errors


def test_what_is_whole_is_not_told():
    """Nor what names no files."""
    assert list(snapshot_errors([KeptSnapshot("checkpoint 1", 3, ()), KeptSnapshot("checkpoint 2", 0, ())], 7)) == []


def test_what_is_gone_is_told():
    """The first three files by name."""
    (violation,) = snapshot_errors([KeptSnapshot("checkpoint 1", 9, tuple("abcd"))], 7)

    assert (violation.law, violation.time_ns) == (RETAINED_FILES_LAW, 7)
    assert (violation.where, violation.fact) == ("checkpoint 1", "4 of its 9 files are gone")
    assert violation.story == ("missing: a", "missing: b", "missing: c", "...")


def test_three_files_are_told_in_full():
    (violation,) = snapshot_errors([KeptSnapshot("checkpoint 1", 9, tuple("abc"))], 7)

    assert violation.story == ("missing: a", "missing: b", "missing: c")
