"""Work that takes long says so in a pipe as well: a line every ten seconds."""

from sim.app.cli.console import bar, log_lines
from sim.app.verbs.common import Work


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def lines_of(capsys, watch, clock, seconds, ns_at):
    for second in range(seconds + 1):
        clock.now_s = float(second)
        watch(second // 10, ns_at(second))
    return [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]


def test_a_line_every_ten_seconds(capsys):
    """The work takes 100 s, and each second does 1 % of it."""
    clock = Clock()
    watch = log_lines(Work("study", 100, 10), clock)

    assert [
        f"study: {n}/10 cells, {10 * n} %, at most {left} left"
        for n, left in ((1, "1 min 30 s"), (2, "1 min 20 s"), (3, "1 min 10 s"))
    ] == (lines_of(capsys, watch, clock, 30, lambda second: second))


def test_work_that_becomes_slower_says_so(capsys):
    clock = Clock()
    watch = log_lines(Work("study", 100, None, "runs"), clock)
    lines = lines_of(capsys, watch, clock, 40, lambda second: min(second, 10) + max(second - 10, 0) / 10)

    assert lines[0] == "study: 1 runs, 10 %, at most 1 min 30 s left"
    assert lines[1].endswith("more than promised: it is slower than it was")


def test_compiling_is_no_work_done(capsys):
    """The program compiled for 19 s, and then each second did 2 %.  9 hours were promised after 20 s."""
    clock = Clock()
    lines = lines_of(
        capsys, log_lines(Work("study", 100, None, "runs"), clock), clock, 30, lambda second: max(second - 19, 0) * 2
    )

    assert lines == ["study: 1 runs, 0 %", "study: 2 runs, 2 %", "study: 3 runs, 22 %, at most 39 s left"]


def test_the_best_so_far_and_never_nothing_left(capsys):
    """Work is at its end before it is over, as where the last runs take longer than was estimated."""
    clock = Clock()
    watch = log_lines(Work("trying settings", 100, None, "runs", lambda: "best so far: aligned, every 4 s"), clock)
    lines = lines_of(capsys, watch, clock, 20, lambda second: min(5 * second + 5, 100))

    assert lines == [
        "trying settings: 1 runs, 55 %, at most 9 s left, best so far: aligned, every 4 s",
        "trying settings: 2 runs, 100 %, less than a second left, best so far: aligned, every 4 s",
    ]


def test_a_pipe_has_lines(monkeypatch, capsys):
    monkeypatch.setattr("sim.app.cli.console.LOG_EVERY_S", 0.0)
    with bar(Work("study", 100, 4)) as watch:
        watch(1, 25)

    assert capsys.readouterr().err.startswith("study: 1/4 cells, 25 %")


def test_no_more_is_left_than_the_time_limit_leaves(capsys):
    """100 s of work at 1 % per second, of which 25 s may be spent."""
    clock = Clock()
    work = Work("trying settings", 100, None, "runs", left_s=lambda: 25 - clock())

    assert [
        line.split(", ")[-1] for line in lines_of(capsys, log_lines(work, clock), clock, 20, lambda second: second)
    ] == ["at most 15 s left", "at most 5 s left"]
