"""A few long cells do not leave a large cluster idle: sweeps on the make-believe cluster of `benchmarks.spark_makespan`."""

import random

import pytest

from benchmarks.spark_makespan import CASES, Case, planned, swept

ROW = {"status": "ok", "error": ""}


@pytest.mark.parametrize(("case", "per_slot"), list(zip(CASES, (40, 20, 6), strict=True)), ids=str)
def test_makespans_are_close_to_their_bound(case, per_slot):
    """Three jobs at a time took 2.9, 6 and 2 times the bound with so many cells, and 23 times with 100 per slot."""
    sweep = swept(*planned(per_slot * case.slots, case), case.slots, ROW)

    print(f"{case}: {sweep.makespan_s:.0f} s, bound {sweep.bound_s:.0f} s, {sweep.ratio:.2f} times")
    assert 1 <= sweep.ratio < 1.1


def test_cells_that_nobody_expects_to_be_long_hold_up_only_their_own_slot():
    """They begin in any order, so the last one may begin when all others have ended."""
    case = Case(slots=20, long_share=0.05, long_s=30)
    plan, lengths_s = planned(1000, case, foreseen=False)
    sweep = swept(plan, lengths_s, case.slots, ROW)

    assert sweep.makespan_s <= sum(lengths_s.values()) / case.slots + case.long_s + 1


def test_a_cell_that_kills_its_executor_ends_and_all_others_have_rows():
    """Its job fails, and what had no row runs again in halves of it."""
    case = Case(slots=4, long_share=0.1, long_s=20)
    plan, lengths_s = planned(80, case)
    deadly = random.Random(2).choice(sorted(lengths_s))
    sweep = swept(plan, lengths_s, case.slots, ROW, fails=lambda names: deadly in names)

    assert sweep.errors == [deadly]
    assert sweep.cells == 80
