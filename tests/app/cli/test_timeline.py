"""`ckptsim timeline`: a file that parses, what was left out, and mistakes."""

import json


def test_a_file_for_a_viewer(ckptsim, tiny, tmp_path):
    done = ckptsim(f"timeline {tiny} --out {tmp_path}/run.json --strategy unaligned")

    written = json.loads((tmp_path / "run.json").read_text())
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"{tmp_path / 'run.json'}: open it with ui.perfetto.dev\n" == done.stderr
    assert {key: written["otherData"][key] for key in ("run", "left_out")} == {"run": "tiny, unaligned", "left_out": 0}
    assert any(event["name"] == "checkpoint 1" for event in written["traceEvents"])


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    for options, message in (
        ("--from '5 s'", "--from: 5 s: the window ends at 3 s: nothing lies in it"),
        ("--to soon", "--to: "),
    ):
        done = ckptsim(f"timeline {tiny} -o {tmp_path}/run.json --strategy aligned {options}")

        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
