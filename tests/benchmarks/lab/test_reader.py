"""Recordings are read as they are, dated from the submission; whatever is none is refused with one clear message."""

import json

import pytest

from benchmarks.lab import Recording, read
from benchmarks.lab.config import Configuration
from benchmarks.lab.orderings import differences
from benchmarks.lab.settings import run_name, settings_of
from benchmarks.lab.startup import startup_ms
from sim.jobs.source.recorded_job import RecordingError
from sim.model.checkpoint import Barriers
from sim.model.scenario import Overheads
from tests.places import RECORDINGS

# Recordings are read as they are, and whatever is none is refused with one clear message.


FILES = sorted(RECORDINGS.glob("*.json.gz"))


def refusal(tmp_path, content, name="recording.json", **options):
    """The message a file with this content is refused with."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(RecordingError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_recording_of_ours_is_read(path):
    """Name, configuration, checkpoints of all subtasks, metrics and events are there."""
    recording = read(path)

    assert path.name == f"{recording.name}.json.gz"
    assert recording.flink_version == "2.3.0"
    assert {node.id for node in recording.config.nodes} == set(recording.metrics)
    subtasks = sum(node.parallelism for node in recording.config.nodes)
    completed = [row for row in recording.checkpoints.list if row.status == "COMPLETED"]
    assert len(completed) >= 7 or "expire" in recording.name
    assert {subtasks} >= {sum(len(task.subtasks) for task in row.tasks.values()) for row in completed}
    assert not recording.event_table("fs_write").empty


def test_the_recordings_are_part_of_the_project():
    """The table of the README names each of them."""
    named = (RECORDINGS / "README.md").read_text()

    assert len(FILES) == 29
    assert [path.name for path in FILES if f"`{path.name.removesuffix('.json.gz')}`" not in named] == []


def test_a_damaged_file_is_refused(tmp_path):
    """Flipped bytes inside the compressed stream, or a wrong checksum."""
    packed = bytearray(FILES[0].read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    assert "recording.json" in refusal(tmp_path, bytes(packed))
    packed = bytearray(FILES[0].read_bytes())
    packed[-6] ^= 0xFF

    assert "is damaged" in refusal(tmp_path, bytes(packed))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\xff\xfe", "is not JSON"),
        (b"\x80\x81\x82\x83\x84", "is not UTF-8 text"),
        (b'{"format": ', "is not JSON: Expecting value at line 1, column 12"),
        (b"[" * 200_000, "is nested more than 100 levels deep"),
        (b"[" + b"[]," * 6_000_000 + b"1]", "would take more than 1 GiB of memory"),
        (b"1" * 10_000, "is not JSON we accept"),
        (b"[1, 2]", "no recording of a Flink job"),
        (b"null", "no recording of a Flink job"),
        (b'{"checkpoints": []}', "has no field 'format'"),
        (b'{"format": "flink-lab/2"}', "has the format 'flink-lab/2'; this version reads 'flink-lab/1'"),
        (b'{"format": ["flink-lab/1"]}', "has the format"),
        (b'{"format": "flink-lab/1"}', "flink_version: Field required"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_recording_is_refused(tmp_path, content, reason):
    """Empty, binary, not JSON, another schema: each with its reason."""
    assert reason in refusal(tmp_path, content)


# Requests and failures are dated from the submission; a run begins when all tasks run.


def recording(**events):
    tables = {kind: {"cols": ["t", "node", "sub"], "rows": rows} for kind, rows in events.items()}
    bare = {
        "format": "flink-lab/1",
        "name": "a",
        "flink_version": "2.3.0",
        "started_ms": 0,
        "ended_ms": 1,
        "events": tables,
    }
    config = {"name": "a", "nodes": [{"id": "a", "kind": "source"}], "duration_s": 1}
    return Recording.model_validate(bare | {"checkpoints": {"counts": {}, "list": []}, "config": config})


def test_the_last_thing_that_starts_counts():
    """Here the state that is filled before the first record."""
    seen = recording(submit=[[1000, "job", -1]], open=[[1700, "a", 0], [1800, "b", 0]], prefilled=[[2500, "b", 0]])

    assert startup_ms(seen) == 1500


def test_what_starts_after_a_failure_does_not():
    seen = recording(
        submit=[[1000, "job", -1]], source_start=[[1900, "a", 0], [9000, "a", 0]], fail_injected=[[7000, "b", 0]]
    )

    assert startup_ms(seen) == 900


def test_a_recording_that_does_not_tell_began_as_usual():
    assert Overheads().start_ns / 10**6 == startup_ms(recording()) == startup_ms(recording(submit=[[1000, "job", -1]]))


# A setting is what can be set on its own: two keys for one choice are one, the same change everywhere is one.


OP = {"id": "op", "inputs": [{"from": "src"}]}


def settings(flink=None, version="2.3.0", parallelism=2, **op):
    nodes = [{"id": "src", "kind": "source", "parallelism": parallelism}, OP | {"parallelism": parallelism} | op]
    config = {"name": "any", "duration_s": 60, "flink": flink or {}, "nodes": nodes}
    return settings_of(Configuration.model_validate(config), version)


UNALIGNED = {"execution.checkpointing.unaligned.enabled": True}
TIMEOUT = UNALIGNED | {"execution.checkpointing.aligned-checkpoint-timeout": "1 s"}


@pytest.mark.parametrize(
    ("other", "changed"),
    [
        (settings(flink=UNALIGNED), ["barriers"]),
        (settings(flink=TIMEOUT), ["barriers"]),
        (settings(parallelism=4), ["parallelism"]),
        (settings(parallelism=4, serviceUs=5), ["parallelism", "service_us"]),
        (settings(version="2.3.1"), []),
        (settings(version="1.20.3"), ["version"]),
        (settings(prepareMs=500), ["work"]),
        (settings(out_weights=None), []),
    ],
)
def test_what_differs_from_a_plain_job(other, changed):
    assert changed == [setting for setting, _, _ in differences(settings(), other)]


# ---- What the name of a recorded run says.


@pytest.mark.parametrize(
    ("text", "job", "barriers"),
    [
        ("J2-count-aligned", "J2-count", Barriers("aligned")),
        ("J4-pressed-unaligned-r1", "J4-pressed", Barriers("unaligned")),
        ("R4-rocksdb-timeout300", "R4-rocksdb", Barriers("aligned-timeout", 300_000_000)),
        ("R3-firing-interruptible", "R3-firing", Barriers("unaligned")),
    ],
)
def test_job_and_barriers_of_a_name(text, job, barriers):
    name = run_name(text)

    assert (job, barriers) == (name.job, name.barriers)


def test_a_name_that_says_nothing_of_barriers_is_that_of_its_job():
    assert run_name("nightly-r2") == ("nightly-r2", "")
