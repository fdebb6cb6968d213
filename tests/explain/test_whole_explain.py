"""All that `explain` says of planted checkpoints, word for word and to the nanosecond.

`python -m tests.explain.test_whole_explain` writes it anew.
"""

import json

import pytest

from sim.explain.explanation import record, text
from tests.explain.test_explained_checkpoints import STEADY, TWELVE, Planted, explained, scenario
from tests.places import DATA

JOIN = """
  quick: {{source: {{rate: 400/s, record: 1 kB}}}}
  log: {{source: {{rate: RATE, record: 1 kB}}}}
  slow: {{input: {{log: hash}}, service: 1 ms, snapshot: {{pre-barrier: WORK}}}}
  join: {{input: {{quick: hash, slow: hash}}, service: 10 us{sink}}}
"""
STATE = ", state: {size: 20 MB}"
OTHERS = {
    "a slow stream": scenario(
        STEADY, sink=STATE, extra="storage: {bandwidth: 100 MB/s, slow: {share: 100 %, factor: 20}}"
    ),
    "a slow prefix": scenario(
        STEADY,
        sink=STATE,
        extra="storage: {object-store: {bandwidth: 100 MB/s, prefixes: 2, slow: {share: 100 %, factor: 2, lasts: 10 min}}}",
    ),
    "a slow input": scenario(JOIN.replace("RATE", "unlimited").replace("WORK", "0 s")),
    "a late input": scenario(JOIN.replace("RATE", "400/s").replace("WORK", "500 ms")),
    "unaligned, a late input": scenario(
        JOIN.replace("RATE", "unlimited").replace("WORK", "500 ms"), "interval: 2 s, barriers: [unaligned]"
    ),
    "a changelog": scenario(
        STEADY, sink=", state: {size: 20 MB, backend: rocksdb, changelog: {}}", extra="storage: {bandwidth: 1 MB/s}"
    ),
    "a commit": scenario(STEADY, sink=", commit: {time: 400 ms}"),
    "inputs that end": scenario(STEADY.replace("rate: 400/s", "rate: 400/s, records: 600")),
    "a busy source": scenario(STEADY.replace("record: 1 kB}}", "record: 1 kB}}, service: 400 ms")),
}
CHECKPOINTS = TWELVE | {name: Planted("", "", "", document) for name, document in OTHERS.items()}


def told(kind):
    """The text and the record."""
    found = explained(CHECKPOINTS[kind])
    return f"{text(found)}\n\n{json.dumps(record(found), indent=1, ensure_ascii=False)}\n"


def place(kind):
    return DATA / "explain" / f"{kind.replace(', ', '-').replace(' ', '-')}.txt"


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_word_for_word(kind):
    assert place(kind).read_text() == told(kind)


if __name__ == "__main__":
    for name in CHECKPOINTS:
        place(name).write_text(told(name))
