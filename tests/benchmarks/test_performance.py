"""The page of what runs cost says what the history of benchmarks says, and no aim that is missed passes for kept."""

from benchmarks.measure import HISTORY
from benchmarks.performance import BEGIN, CASES, PAGE, aims, block, read, replaced

TEXT = HISTORY.read_text()


def verdicts(text):
    return {aim.what: (aim.measured, aim.kept) for aim in aims(read(text))}


def test_the_tables_of_the_page_are_those_of_the_history():
    """`python -m benchmarks.performance --write` was called after the last measurement."""
    page = PAGE.read_text()

    assert replaced(page, block(TEXT)) == page
    assert page.count(BEGIN) == 1


def test_a_later_row_stands_for_an_earlier_one():
    row = "2026-11-23 00:00,1+0,1 x CPU,control,4x256 aligned,CPU per task and checkpoint,{},ms\n"
    aim = "control per task and checkpoint with 1,024 tasks"

    assert verdicts(TEXT + row.format(0.5) + row.format(0.1))[aim] == ("0.1 ms", True)
    assert verdicts(TEXT + row.format(0.1) + row.format(0.5))[aim] == ("0.5 ms", False)


def test_an_aim_is_kept_to_the_limit_and_no_further():
    row = '2026-11-23 00:00,1+0,1 x CPU,whole,"4x256, 20 s, aligned",memory per channel,{},B\n'
    aim = "memory per channel of a whole run, 4x256, 20 s, aligned"

    assert [verdicts(TEXT + row.format(value))[aim][1] for value in (1024, 1025)] == [True, False]


def test_every_whole_run_of_the_benchmark_is_on_the_page():
    assert [case for case in CASES if f"| {case} |" not in PAGE.read_text()] == []
