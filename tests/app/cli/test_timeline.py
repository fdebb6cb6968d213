"""`ckptsim timeline`: a file that parses, one checkpoint as an animation, and mistakes."""

import json


def test_a_file_for_a_viewer(ckptsim, tiny, tmp_path):
    done = ckptsim(f"timeline {tiny} --out {tmp_path}/run.json --strategy unaligned")

    written = json.loads((tmp_path / "run.json").read_text())
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"{tmp_path / 'run.json'}: open it with ui.perfetto.dev\n" == done.stderr
    assert written["otherData"]["run"] == "tiny, unaligned"
    assert any(event["name"] == "checkpoint 1" for event in written["traceEvents"])


def test_one_checkpoint_as_an_animation(ckptsim, tiny, tmp_path):
    """The file ends in .html: strategies side by side, the question, and the command that makes it again."""
    done = ckptsim(f"timeline {tiny} --out {tmp_path}/run.html --checkpoint 2")
    text = (tmp_path / "run.html").read_text()

    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"{tmp_path / 'run.html'}\n")
    found = json.loads(text.split('class="player-data">')[1].split("</script>")[0])
    assert [(run["name"], run["checkpoint"]) for run in found["runs"]] == [("aligned", 2), ("unaligned", 2)]
    assert "<title>Checkpoint 2 of tiny</title>" in text
    assert "run.html --checkpoint 2</pre>" in text


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    for options, message in (
        ("--from '5 s'", "--from: 5 s: the window ends at 3 s: nothing lies in it"),
        ("--to soon", "--to: "),
        ("--checkpoint 2", "run.json: the animation of a checkpoint is a file that ends in .html"),
        ("--from '1 s' -o run.html", "run.html: an animation shows one checkpoint: --checkpoint instead of"),
        ("--checkpoint 9 -o run.html", "no checkpoint 9: they are 1 to"),
    ):
        done = ckptsim(f"timeline {tiny} -o {tmp_path}/run.json --strategy aligned {options}")

        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
