"""`ckptsim init`: a first file, and the command that runs it."""

import pytest

from sim.app.examples import EXAMPLES, contents


def test_what_is_written_runs(ckptsim, tmp_path):
    """In the folder where the command is given."""
    done = ckptsim("init first")

    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "first.yaml: written; next: ckptsim run first.yaml\n")
    assert ckptsim("run first.yaml --set 'run.duration=8 s' --jobs 1").exit_code == 0


def test_a_sweep_comes_with_what_it_reads(ckptsim, tmp_path):
    done = ckptsim("init day -o new/folder")

    assert done.exit_code == 0, done.stderr
    assert {"day.yaml", "day-job.yaml", "day.csv"} == {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert done.stderr.endswith("next: ckptsim sweep new/folder/day.yaml\n")


def test_without_a_name_examples_are_listed(ckptsim):
    done = ckptsim("init")

    assert done.exit_code == 0
    assert list(EXAMPLES) == [line.split()[0] for line in done.stdout.splitlines()[1:]]


def test_nothing_is_replaced_unasked(ckptsim, tmp_path):
    (tmp_path / "first.yaml").write_text("mine")
    done = ckptsim("init first")

    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "first.yaml: exists already" in done.stderr
    assert (tmp_path / "first.yaml").read_text() == "mine"
    assert ckptsim("init first --force").exit_code == 0
    assert (tmp_path / "first.yaml").read_text() != "mine"


def test_a_name_that_is_no_example(ckptsim):
    done = ckptsim("init frist")

    assert done.exit_code == 2
    assert "no example 'frist'; examples: first, failures" in done.stderr


@pytest.mark.parametrize("name", ["kafka-rocksdb-s3", "kafka-iceberg", "cdc"])
def test_a_production_job_marks_what_to_replace(ckptsim, name):
    """Its lines are named, and it is valid as it is."""
    ckptsim(f"init {name}")
    done = ckptsim(f"check {name}.yaml")
    lines = [i for i, line in enumerate(contents(name)[f"{name}.yaml"].splitlines(), 1) if "# UNKNOWN: " in line]

    assert done.exit_code == 0, done.stderr
    assert len(lines) >= 7
    assert f"{len(lines)} values are assumed, see UNKNOWN in lines {lines[0]}, {lines[1]}" in done.stderr


def test_questions_are_asked_and_answers_are_written(ckptsim, tmp_path):
    """The mark goes with an answer, which other lines of the same value get as well; without one, value and mark stay."""
    done = ckptsim("init kafka-rocksdb-s3 --ask", given="25k/s\n\n8\n" + "\n" * 20)
    lines = [line.strip() for line in (tmp_path / "kafka-rocksdb-s3.yaml").read_text().splitlines()]

    assert done.exit_code == 0, done.output
    assert lines.count("parallelism: 8") == 3
    assert "how many records per second at the peak? [6k/s]" in done.stderr
    assert "rate: 25k/s" in lines
    assert any(line.startswith("record: 500 B") and "# UNKNOWN: " in line for line in lines)
    assert ckptsim("check kafka-rocksdb-s3.yaml").exit_code == 0
