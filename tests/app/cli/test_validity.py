"""One line on stderr for a job unlike all recordings; nothing on stdout, and nothing for a job like them."""

MARK = "not validated: "


def test_outside_is_one_line_on_stderr(ckptsim, tiny):
    done = ckptsim(f"run {tiny} --jobs 1 --set 'job.sink.service=20 ms' --set cluster.placement=single")
    (line,) = [line for line in done.stderr.splitlines() if MARK in line]

    assert "warning: tiny: not validated: time per record 20 ms (recordings: 100 us to 6 ms); see docs/truth.md" in line
    assert MARK not in done.stdout


def test_inside_nothing_is_said(ckptsim, tiny):
    assert MARK not in ckptsim(f"run {tiny} --jobs 1").stderr


def test_a_sweep_says_it_once_for_all_its_cells(ckptsim, tiny):
    done = ckptsim(f"sweep {tiny} --jobs 1 --set 'job.sink.service=[1 ms, 20 ms, 30 ms]'")

    assert [line.partition(";")[0] for line in done.stderr.splitlines() if MARK in line] == [
        "warning: tiny: not validated: time per record 20 ms to 30 ms (recordings: 100 us to 6 ms)"
    ]
