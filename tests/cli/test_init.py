"""`ckptsim init`: a first file, and the command that runs it."""

from sim.examples import EXAMPLES


def test_what_is_written_runs(ckptsim, tmp_path):
    """In the folder where the command is given."""
    done = ckptsim("init", "first")

    assert (0, "", "first.yaml: written; next: ckptsim run first.yaml\n") == (done.exit_code, done.stdout, done.stderr)
    assert 0 == ckptsim("run", "first.yaml", "--set", "run.duration=8 s", "--jobs", 1).exit_code


def test_a_sweep_comes_with_what_it_reads(ckptsim, tmp_path):
    done = ckptsim("init", "day", "-o", "new/folder")

    assert 0 == done.exit_code, done.stderr
    assert {"day.yaml", "day-job.yaml", "day.csv"} == {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert done.stderr.endswith("next: ckptsim sweep new/folder/day.yaml\n")


def test_without_a_name_examples_are_listed(ckptsim):
    done = ckptsim("init")

    assert 0 == done.exit_code
    assert list(EXAMPLES) == [line.split()[0] for line in done.stdout.splitlines()[1:]]


def test_nothing_is_replaced_unasked(ckptsim, tmp_path):
    (tmp_path / "first.yaml").write_text("mine")
    done = ckptsim("init", "first")

    assert (2, 1) == (done.exit_code, done.stderr.count("\n"))
    assert "first.yaml: exists already" in done.stderr
    assert "mine" == (tmp_path / "first.yaml").read_text()
    assert 0 == ckptsim("init", "first", "--force").exit_code
    assert "mine" != (tmp_path / "first.yaml").read_text()


def test_a_name_that_is_no_example(ckptsim):
    done = ckptsim("init", "frist")

    assert 2 == done.exit_code
    assert "no example 'frist': there are first, failures" in done.stderr
