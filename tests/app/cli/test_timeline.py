"""`ckptsim timeline`: one checkpoint as an animation, and mistakes."""

import json


def test_one_checkpoint_as_an_animation(ckptsim, tiny, tmp_path):
    """Strategies side by side, the question, and the command that makes it again."""
    done = ckptsim(f"timeline {tiny} --out {tmp_path}/run.html --checkpoint 2")
    text = (tmp_path / "run.html").read_text()

    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"{tmp_path / 'run.html'}\n")
    found = json.loads(text.split('class="player-data">')[1].split("</script>")[0])
    assert [(run["name"], run["checkpoint"]) for run in found["runs"]] == [("aligned", 2), ("unaligned", 2)]
    assert "<title>Checkpoint 2 of tiny</title>" in text
    assert "run.html --checkpoint 2</pre>" in text


def test_mistakes_are_a_line_and_a_code(ckptsim, tiny, tmp_path):
    for options, message in (
        ("-o run.json", "run.json: expected a file that ends in .html"),
        ("--checkpoint 9 -o run.html", "no checkpoint 9: ids are 1 to"),
    ):
        done = ckptsim(f"timeline {tiny} --strategy aligned {options}")

        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
