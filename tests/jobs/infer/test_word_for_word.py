"""Imports of recorded jobs, word for word: what a change of the inference does to them is seen in a review, number by number.

Whether the numbers are true, the other tests and the READMEs of the recordings say.
`python -m tests.jobs.infer.test_word_for_word` writes the files anew.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.lab import Recording
from sim.jobs.reading import infer, read_source, to_document
from tests.places import DATA

KEPT = DATA / "imports"
JOBS = [
    f"{folder}/{name}"
    for folder, names in {
        "rest": ["pressed.zip", "keeping-up.zip", "archive.json.gz", "jobmanager.log"],
        "async-io": ["A1-calm-aligned.zip", "A2-full-unaligned.zip"],
        "changelog": ["rocksdb-memory.zip"],
        "heap-restores": ["values-100.zip"],
        "scaling": ["K3-scale-p2-aligned.zip", "S1-one-core-p2-aligned.zip"],
        "planted": ["hot.zip", "sink.zip", "window.zip"],
        "users-jobs": [
            "J1-q20-aligned.zip",
            "J2-count-unaligned.zip",
            "J3-rocksdb-aligned.zip",
            "J4-pressed-timeout500-r1.zip",
            "R1-burst7-timeout500.zip",
            "R3-firing-aligned.zip",
            "R4-rocksdb-timeout300.zip",
            "R5-changelog-unaligned.zip",
            "R6-grow-aligned.zip",
            "R7-cores-aligned.zip",
            "R8-outputs-aligned.zip",
            "R9-q5-aligned.zip",
            "R10-q12-aligned.zip",
        ],
    }.items()
    for name in names
]
RUNS = [
    f"{folder}/{name}"
    for folder, names in {
        "recordings": [
            "join-fastslow-aligned",
            "fail-recover-hashmap160-aligned",
            "rocksdb-incremental-p2-aligned",
            "stop-savepoint-drain-mild",
            "final-bounded-plus-unbounded",
            "p4-severe-unaligned",
            "p4-skew70-aligned",
            "p4-none-largestate-slowdfs-aligned",
            "chain3-p4-flaky-syncflush2000-aligned",
            "maxconcurrent2-p2-severe-aligned",
        ],
        "held-out": [
            "async-bottleneck-aligned",
            "broadcast-stage-unaligned",
            "cascade-chain3-bounded",
            "killtm-single-unaligned",
            "filter02-p4-aligned",
            "v120-p3-excl1-float4-unaligned",
            "fanout2-join-aligned",
        ],
    }.items()
    for name in names
]
"""Our own recordings, of which only the configuration is read."""


def imported(name):
    """The scenario as it is written, wherever the checkout lies."""
    path = DATA / (name if name in JOBS else f"{name}.json.gz")
    source = read_source([path])
    found = to_document(source) if isinstance(source, Recording) else infer(replace(source, source=path.name))
    return found.text


def kept(name):
    return KEPT / (Path(name).name.partition(".")[0] + ".yaml")


@pytest.mark.parametrize("name", [*JOBS, *RUNS], ids=lambda name: kept(name).stem)
def test_an_import_is_what_it_was(name):
    assert kept(name).read_text() == imported(name)


def test_each_file_is_one_of_an_import():
    assert {kept(name) for name in (*JOBS, *RUNS)} == set(KEPT.glob("*.yaml"))


if __name__ == "__main__":
    for job in (*JOBS, *RUNS):
        kept(job).write_text(imported(job))
