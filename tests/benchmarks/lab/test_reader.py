"""Recordings are read as they are, and whatever is none is refused with one clear message."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from benchmarks.lab import read
from sim.jobs.source.recorded_job import RecordingError

DATA = Path(__file__).parents[2] / "data" / "recordings"
FILES = sorted(DATA.glob("*.json.gz"))


@pytest.fixture
def document():
    """A recording as JSON, to be damaged."""
    return json.loads(gzip.decompress((DATA / "p4-severe-unaligned.json.gz").read_bytes()))


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
    named = (DATA / "README.md").read_text()

    assert len(FILES) == 29
    assert [path.name for path in FILES if f"`{path.name.removesuffix('.json.gz')}`" not in named] == []


def test_numbers_are_those_of_the_file():
    """Spot checks against the JSON, field by field."""
    recording = read(DATA / "p4-severe-unaligned.json.gz")

    fourth = recording.checkpoints.list[3]
    assert (fourth.id, fourth.end_to_end_duration, fourth.persisted_data) == (4, 89, 7556696)
    sink = fourth.tasks["sink"].subtasks[0]
    assert (
        sink.start_delay,
        sink.alignment.duration,
        sink.alignment.persisted,
        sink.checkpoint.sync,
        sink.checkpoint.async_,
    ) == (27, 0, 518044, 0, 32)
    table = recording.subtasks_table().set_index(["id", "vertex", "index"])
    assert table.loc[(4, "sink", 1), "alignment_persisted"] == 513812
    assert recording.metric("src", "accumulateBackPressuredTimeMs").iloc[0].tolist() == [3919, 4055, 3956, 3938]


def test_plain_json_is_read_too(tmp_path, document):
    """Compressed or not is told by content, not by name."""
    path = tmp_path / "recording.json.gz"
    path.write_text(json.dumps(document))

    assert read(path) == read(DATA / "p4-severe-unaligned.json.gz")


def test_unknown_fields_are_ignored_and_missing_samples_are_nan(tmp_path, document):
    """Another Flink adds fields; a metric comes late or vanishes with its tasks."""
    document["something"] = {"new": [1, 2]}
    document["checkpoints"]["list"][0]["tasks"]["sink"]["subtasks"][0]["something"] = 1
    samples = len(document["metrics"]["sink"]["t"])
    document["metrics"]["sink"]["numRecordsIn"] = [None, [1, None, "NaN"], [5, 6, 7, 8]]
    path = tmp_path / "recording.json"
    path.write_text(json.dumps(document))

    metric = read(path).metric("sink", "numRecordsIn")

    assert (samples, 4) == metric.shape
    assert metric.iloc[2].tolist() == [5, 6, 7, 8]
    assert metric.notna().sum().sum() == 5
    assert read(path).metric("sink", "noSuchMetric").empty


def test_a_directory_is_no_recording(tmp_path):
    """A directory is refused by name."""
    with pytest.raises(RecordingError, match="is a directory"):
        read(tmp_path)


def test_a_missing_file_says_so(tmp_path):
    """No such file: one line, no traceback of the file system."""
    with pytest.raises(RecordingError, match=r"nothing\.json: cannot be read \(No such file or directory\)"):
        read(tmp_path / "nothing.json")


def test_a_truncated_file_is_refused(tmp_path):
    """Wherever the compressed file is cut."""
    packed = FILES[0].read_bytes()

    for length in (2, 5, 20, len(packed) // 2, len(packed) - 3):
        assert "is cut off" in refusal(tmp_path, packed[:length])


def test_a_damaged_file_is_refused(tmp_path):
    """Flipped bytes inside the compressed stream, or a wrong checksum."""
    packed = bytearray(FILES[0].read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    assert "recording.json" in refusal(tmp_path, bytes(packed))
    packed = bytearray(FILES[0].read_bytes())
    packed[-6] ^= 0xFF

    assert "is damaged" in refusal(tmp_path, bytes(packed))


def test_a_bomb_is_not_inflated(tmp_path):
    """Reading stops at the limit, long before a file of zeros is in memory."""
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    message = refusal(tmp_path, bomb, largest_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert "holds more than 1000000 bytes" in message
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\xff\xfe", "is not JSON"),
        (b"\x80\x81\x82\x83\x84", "is no text"),
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


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda d: d.pop("config"), "config: Field required"),
        (
            lambda d: d["checkpoints"]["list"][2].pop("trigger_timestamp"),
            "checkpoints.list.2.trigger_timestamp: Field required",
        ),
        (lambda d: d["checkpoints"]["list"][2].update(status="HOPEFUL"), "checkpoints.list.2.status"),
        (lambda d: d["config"]["nodes"][1].update(parallelism=-1), "config.nodes.1.parallelism"),
        (lambda d: d["config"]["nodes"][1].update(parallelism=10**9), "config.nodes.1.parallelism"),
        (lambda d: d["config"]["nodes"][1].update(serviceUs="quick"), "config.nodes.1.serviceUs"),
        (
            lambda d: d["config"]["nodes"][1].update(inputs=[{"from": "sink"}]),
            "node 'map' reads 'sink', which does not stand before it",
        ),
        (lambda d: d["config"]["nodes"][2].update(id="map"), "two nodes are called 'map'"),
        (lambda d: d["config"]["nodes"][2].pop("inputs"), "a source has no inputs, every other node has"),
        (lambda d: d["config"].update(nodes=[]), "config.nodes"),
        (lambda d: d["config"].update(duration_s=float("inf")), "config.duration_s"),
        (lambda d: d["events"]["submit"]["rows"].append([1]), "events.submit"),
        (lambda d: d.update(metrics=[]), "metrics"),
    ],
    ids=range(13),
)
def test_every_damage_is_named_by_field(tmp_path, document, damage, reason):
    """The message names the place in the file."""
    damage(document)

    assert reason in refusal(tmp_path, document)


def test_many_mistakes_are_counted(tmp_path, document):
    """A file of another tool does not flood the terminal."""
    for checkpoint in document["checkpoints"]["list"]:
        checkpoint["id"] = "x"

    assert f"and {len(document['checkpoints']['list']) - 5} more" in refusal(tmp_path, document)
