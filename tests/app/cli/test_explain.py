"""`ckptsim explain`: the folder of a run, a scenario file, and what is wrong with either."""

import json

from tests.app.cli.conftest import without_axes


def test_a_folder_and_its_scenario_say_the_same(ckptsim, tiny):
    folder = without_axes(ckptsim(f"run {tiny} --jobs 1")).strip()
    first, again = ckptsim(f"explain {tiny}"), ckptsim(f"explain {folder}")

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert first.stdout == again.stdout
    assert "(aligned), the median of 3, took" in first.stdout
    assert "(unaligned), the median of 3, took" in first.stdout
    assert "sum to the last acknowledgement" in first.stdout


def test_json_sums_exactly(ckptsim, tiny):
    done = ckptsim(f"explain {tiny} --json --checkpoint 2 --strategy aligned")

    (record,) = json.loads(done.stdout)
    assert (record["checkpoint"], record["strategy"], record["status"]) == (2, "aligned", "COMPLETED")
    assert record["duration_ns"] == sum(part["duration_ns"] for part in record["parts"])
    assert all(change["rest_of_path_ns"] < record["duration_ns"] for change in record["what_if"])


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    for command, code, message in (
        (f"explain {tiny} --strategy nobody", 2, "--strategy: no 'nobody': there are aligned, unaligned"),
        (f"explain {tiny} --checkpoint 99 --strategy aligned", 2, "no checkpoint 99: ids are 1 to"),
        (f"explain {tmp_path}/empty", 3, "is not a folder of results"),
        (f"explain {tmp_path}/nowhere.yaml", 3, "nowhere.yaml"),
        (f"explain {tiny} --set checkpoint.interval=off", 2, "no strategy takes checkpoints"),
    ):
        done = ckptsim(command)

        assert (code, 1) == (done.exit_code, without_axes(done).count("\n")), done.stderr
        assert message in done.stderr
