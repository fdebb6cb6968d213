"""What is written is what a person would have written, and means the same when read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.schema.text import Reading, _text, compose, write

DOCUMENT = {
    "version": 1,
    "job": {
        "a": {"source": {"rate": "1k/s", "record": "1008 B"}, "parallelism": 4},
        "b: c": {
            "input": {"a": {"ship": "hash", "weights": [7, 1, 1, 1]}},
            "service": {"lognormal": {"mean": "100 us", "cv": 1.5}},
            "fan-out": "0.5",
            "parallelism": 4,
            "state": {"size": "4 MB", "backend": "rocksdb", "update": "10 %", "value": "1 kB"},
        },
    },
    "flink": {"execution.checkpointing.interval": "4 s", "execution.checkpointing.unaligned.enabled": True},
    "cluster": {"placement": "isolated", "profile": "1.20"},
    "run": {"duration": "48 s"},
    "expect": {"checkpoints.completed": ["> 3", "<= 12"]},
}

TEXT = """\
# yaml-language-server: $schema=./ckptsim.schema.json
# What then?

# Imported by hand.
version: 1
job:
  a: {source: {rate: 1k/s, record: 1008 B}, parallelism: 4}
  "b: c":  # the slow one
    input: {a: {ship: hash, weights: [7, 1, 1, 1]}}
    service: {lognormal: {mean: 100 us, cv: 1.5}}
    # measured on a Tuesday, when the machine was quiet and nobody else used the network; all others were much slower
    fan-out: 0.5
    parallelism: 4
    state: {size: 4 MB, backend: rocksdb, update: 10 %, value: 1 kB}
flink:
  execution.checkpointing.interval: 4 s
  execution.checkpointing.unaligned.enabled: true
cluster: {placement: isolated, profile: 1.20}
run: {duration: 48 s}  # as recorded
expect: {checkpoints.completed: ["> 3", "<= 12"]}
"""


def test_the_text():
    """Short mappings on one line, comments at their keys, quotes where YAML wants them."""
    comments = {
        "": "Imported by hand.",
        "run": "as recorded",
        "job.b: c": "the slow one",
        "job.b: c.fan-out": "measured on a Tuesday, when the machine was quiet and nobody else used the network; all others were much slower",
    }

    assert write(DOCUMENT, "What then?", comments) == TEXT


def test_a_comment_must_have_its_key():
    """A misspelt path is a mistake of the caller, not a lost comment."""
    with pytest.raises(KeyError, match=r"run\.durration"):
        write(DOCUMENT, "?", {"run.durration": "long"})


@given(st.text(min_size=1, max_size=12))
def test_any_text_survives_as_key_and_value(text):
    """Quoted where YAML would read something else, in flow mappings too."""
    for document in (
        f"{_text(text)}: {_text(text)}",
        f"{{another key: [{_text(text)}], {_text(text)}: {_text(text)}}}",
    ):
        reading = Reading("s")
        read = compose(document, reading)

        assert reading.problems == {}
        assert text == str(read[text])


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "null",
        "~",
        "0x10",
        "1e5",
        "007",
        ".nan",
        "- a",
        "? a",
        "a: b",
        "a #b",
        "1:30",
        "",
        " a",
        "a ",
        "<",
        "[a",
        "a,b",
        "é\n",
    ],
)
def test_words_that_look_like_something_else_are_quoted(text):
    """Numbers stay plain: they are read as they are written."""

    assert _text(text).startswith('"')
    assert [_text(plain) for plain in ("1.20", "30 %", "chk-1", "2.x")] == ["1.20", "30 %", "chk-1", "2.x"]
