"""Everything that the screen says is in the JSON: sentences word for word, the numbers of tables as numbers."""

import json

import pytest

from sim.results.formats import bytes_text, change_text, count_text, ms_text, per_second_text, share_text
from tests.studies.comparison.sentence_numbers import numbers

SCENARIO = """\
# What is lost?
version: 1
job:
  src:  {source: {rate: 1k/s, record: 1 kB}, parallelism: 2}
  sink: {input: {src: hash}, service: 1200 us, parallelism: 2, commit: two-phase}
checkpoint: {interval: 2 s, barriers: [aligned, unaligned], timeout: 100 ms, tolerable-failed: 9}
storage: {bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}
faults: [{kill: "sink", at: 11 s}]
run: {duration: 20 s}
expect: {checkpoints.end_to_end_duration.max: < 1 ms, checkpoints.end_to_end_duration.p99: < 1 h}
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """(what the screen says, the JSON), of one scenario with a failure."""
    from typer.testing import CliRunner

    from sim.app.cli import app

    folder = tmp_path_factory.mktemp("json")
    (folder / "lost.yaml").write_text(SCENARIO)
    arguments = ["run", str(folder / "lost.yaml"), "--jobs", "1", "--out", str(folder / "out")]
    screen, machine = (
        CliRunner().invoke(app, [*arguments, *options], env={"COLUMNS": "400"}).stdout for options in ((), ("--json",))
    )
    return screen, json.loads(machine)


def strings(value):
    """All of a JSON value, and its keys."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value


def numbers_as_texts(value):
    """Each number of a JSON value as every text that it could be in a table."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers_as_texts(part)
    elif isinstance(value, int | float):
        yield from (text(value) for text in (bytes_text, change_text, count_text, ms_text, per_second_text, share_text))
        yield ms_text(1e3 * value)


def unsaid(screen, machine):
    """Sentences and cells of the screen that the JSON does not have."""
    texts, known = set(strings(machine)), set(numbers_as_texts(machine))
    known |= {number for text in texts for number in numbers(text)}
    for line in filter(str.strip, screen.splitlines()):
        cells = line.split("  ")
        if line in texts or cells[0] == "strategy":
            continue
        if len(cells) == 1:
            yield line
        yield from (f"{cells[0]}: {number}" for cell in cells[1:] for number in numbers(cell) if number not in known)


def test_the_json_has_what_the_screen_says(printed):
    screen, machine = printed

    assert list(unsaid(screen, machine)) == []
    assert machine["after_a_failure"] == "Downtime and replay after a failure are the same with all of them."
    assert {"p50", "The", "What", "failed", "unknown", "lost", "longest"} == {
        line.split()[1].rstrip(":") for line in machine["outcomes"]
    }
    assert [row["kind"] for row in machine["recoveries"]["aligned"]] == ["task"]


@pytest.mark.parametrize("part", ["consequences", "after_a_failure", "verdict", "outcomes"])
def test_what_is_left_out_is_missed(printed, part):
    screen, machine = printed

    assert list(unsaid(screen, {key: value for key, value in machine.items() if key != part}))
