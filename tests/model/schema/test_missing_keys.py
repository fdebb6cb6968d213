"""A required key that is missing is named with what to write there: the message is enough to go on."""

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError, example_of

SCENARIO = """# A small job.
version: 1
job:
  a: {source: {rate: 1k/s, record: 100 B}}
  b: {input: {a: {ship: hash}}}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


def problems(text):
    with pytest.raises(ScenarioError) as error:
        loads(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "without", "message"),
    [
        ("checkpoint: {interval: 5 s}\n", "", "checkpoint: required key is missing, e.g. checkpoint: {interval: 30 s}"),
        ("{duration: 10 s}", "{}", "run.duration: required key is missing, e.g. duration: 30 s"),
        (", record: 100 B", "", "job.a.source.record: required key is missing, e.g. record: 32 KiB"),
        ("{ship: hash}", "{record: 9 B}", "job.b.input.a.ship: required key is missing, e.g. ship: forward"),
    ],
)
def test_the_message_says_what_to_write(line, without, message):
    assert line in SCENARIO
    assert message in problems(SCENARIO.replace(line, without))


def test_a_key_without_an_example_has_none():
    """Names are the reader's own, and half of a section would not be taken."""
    name, size = {"type": "string"}, {"examples": ["1 B"]}
    schema = {
        "properties": {
            "name": name,
            "size": size,
            "both": {"properties": {"name": name, "size": size}, "required": ["name", "size"]},
        }
    }

    assert [example_of(schema, (key,)) for key in ("name", "both", "size")] == ["", "", "size: 1 B"]
