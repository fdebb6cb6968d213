"""``python -m benchmarks.lab validate``: what is read is judged, what is not is named, and the exit code says which."""

import json

from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS

NAMES = ("p2-severe-aligned", "p4-severe-aligned", "p4-severe-unaligned")


def test_several_recordings_end_with_orderings_summaries_and_bars(lab):
    done = lab("validate", *(RECORDINGS / f"{name}.json.gz" for name in NAMES), "--seeds", "1", "--jobs", "2")

    assert done.exit_code == 0
    assert "barriers: aligned -> unaligned" in done.stdout
    assert "orderings are predicted right." in done.stdout
    assert "WRONG" not in done.stdout
    for heading in ("observed p10", "median error", "asked for"):
        assert heading in done.stdout


def test_json_is_a_list_of_rows_on_stdout_and_nothing_else(lab, tmp_path):
    """One good file, plain or compressed; an unfinished copy is named on stderr, exit code 4."""
    plain, cut = tmp_path / "plain.json", tmp_path / "cut.json.gz"
    plain.write_text(json.dumps(document("p2-severe-aligned")))
    cut.write_bytes((RECORDINGS / "p2-severe-aligned.json.gz").read_bytes()[:5000])
    done = lab("validate", plain, cut, "--seeds", "1", "--json")
    rows = json.loads(done.stdout)

    assert done.exit_code == 4
    assert f"skipped: {cut}: the compressed file is truncated" in done.stderr
    assert {
        "recording",
        "family",
        "quantity",
        "unit",
        "vertex",
        "observed",
        "predicted",
        "relative_error",
        "covered",
    } == set(rows[0])
    assert {None, "src", "map", "sink"} == {row["vertex"] for row in rows}
    assert all({"p10", "p50", "p90"} == set(row[side]) for row in rows for side in ("observed", "predicted"))


def test_what_is_not_modelled_is_shown_and_not_counted(lab, tmp_path):
    """Unless somebody wants it to count."""
    path = tmp_path / "magic.json"
    recorded = document("p2-severe-aligned")
    recorded["config"]["nodes"][1]["magic"] = 1
    path.write_text(json.dumps(recorded))
    printed, counted = (lab("validate", path, "--seeds", "1", *options) for options in ((), ("--all",)))

    assert 0 == printed.exit_code == counted.exit_code
    assert "not modelled: 'map': key 'magic' (shown, not counted)" in printed.stderr
    assert "end_to_end_duration" in printed.stdout
    assert "asked for" not in printed.stdout
    assert "asked for" in counted.stdout


def test_the_command_prints_a_row_per_recording(lab):
    file = RECORDINGS / "p2-severe-aligned.json.gz"
    done = lab("validate", "--explain", file)

    assert done.exit_code == 0
    assert "p2-severe-aligned" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    (record,) = json.loads(lab("validate", "--explain", "--json", file).stdout)
    assert record["recording"] == "p2-severe-aligned"
