"""Names and keys of files that somebody else wrote: nothing a terminal obeys, nothing that fills it, no markup."""

import sys

import pytest

from sim.app.cli.errors import print_message
from sim.app.cli.terminal import put, show
from tests.app.cli.hostile import is_plain

LONG = "k" * 4000
NAMES = """\
# q
version: 1
job:
  "so\\e[31mu\\u202e": {source: {rate: 200/s, record: 400 B}}
  k: {input: {"so\\e[31m": hash}, service: "1 \\e[5m"}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""


def test_names_a_terminal_would_obey(ckptsim, tmp_path):
    (tmp_path / "x.yaml").write_text(NAMES)
    done = ckptsim(f"run {tmp_path}/x.yaml")

    assert done.exit_code == 3
    assert "there is no vertex 'so\\x1b[31m' (did you mean 'so\\x1b[31mu\\u202e'?)" in done.stderr
    assert is_plain(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "key", [LONG, '"' + "k " * 2000 + '"', f'"{LONG}'], ids=["one word", "many words", "never ends"]
)
def test_keys_of_thousands_of_characters(ckptsim, tiny, key):
    """Wherever they stand."""
    with_keys = tiny.read_text().replace("parallelism: 2}\n  sink", f"? {key}\n  : 2}}\n  sink")
    tiny.write_text(with_keys.replace("job:", f"flink: {{? {key} : 1}}\njob:"))
    done = ckptsim(f"run {tiny}")

    assert done.exit_code == 3
    assert all(len(line) < 1000 for line in done.stderr.splitlines())
    assert len(done.stderr) < 2500


def test_names_of_files(ckptsim, tmp_path):
    """That are there, and that are not."""
    place = tmp_path / "a\x1b[31m\n\u202eb.yaml"
    place.write_text("nothing")
    for path in (place, tmp_path / "no\x1b]0;x\x07.yaml"):
        for verb in ("run", "import", "validate", "sweep", "advise"):
            done = ckptsim(verb, path)
            assert done.exit_code != 0
            assert is_plain(done.stdout + done.stderr)


def test_tables_and_prose(capsys):
    show(["name", "value"], [["a\x1b[31m", "1"], [LONG, "2"]])
    put("question \x1b[2J")
    print_message("told \x9b")
    out, err = capsys.readouterr()

    assert is_plain(out + err)
    assert max(map(len, out.splitlines())) < 300


def test_brackets_in_a_terminal_are_no_markup(capsys, monkeypatch):
    """rich would take them for styles, and stumble over a style that ends without having begun."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show(["name [b]x[/b]", "value"], [["[/red]", "1"], ["map[3]", "2"]])
    out = capsys.readouterr().out

    assert "[/red]" in out
    assert "map[3]" in out
    assert "name [b]x[/b]" in out
