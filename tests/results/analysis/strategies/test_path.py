"""Where a checkpoint's time goes, from the table of critical paths."""

from sim.results.critical_path import PathKind
from sim.results.not_completed import PARTS

AFTER = {PathKind.FINALISATION, PathKind.NOTIFICATION, PathKind.COMMIT}


def test_every_part_of_the_table_is_counted_once():
    """A new kind of wait must say where it belongs; what follows the acknowledgement is in no duration, and no run has parts without times."""
    assert {kind.value for kind in set(PathKind) - AFTER - {PathKind.UNREPORTED}} == set(PARTS)
