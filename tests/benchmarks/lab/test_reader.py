"""Recordings are read as they are, and whatever is none is refused with one clear message."""

import json

import pytest

from benchmarks.lab import read
from sim.jobs.source.recorded_job import RecordingError
from tests.places import RECORDINGS

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
