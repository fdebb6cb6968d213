"""A file is what its content says, whatever it is called; what cannot be read is told once, and what came before the damage counts."""

import gzip
import io
import json
import shutil
import tempfile
import zipfile

import pandas as pd
import pyarrow as pa
import pytest

from sim.jobs.reading import read_any
from sim.studies.traces import files
from sim.studies.traces.files import rows_of
from sim.studies.traces.listing import TraceFile, list_files
from tests.places import DATA, REST

ANSWER = f"jobs/{'a' * 32}/checkpoints.json"
LOG = REST / "jobmanager.log"


def read(folder):
    """(kind, trace) -> rows of all files below a folder."""
    batches = [batch for file in list_files(str(folder)).files for batch in rows_of(file)]
    table = pa.Table.from_batches(batches).to_pandas()
    return {
        key: rows.dropna(axis=1, how="all")
        for key, rows in table.groupby(["kind", "trace"], sort=False)
        if key[0] != "note"
    }


def reasons(folder):
    return [why for (kind, _), rows in read(folder).items() if kind == "quarantine" for why in rows["reason"]]


OF_FLINK = ["rest/pressed.zip", "rest/archive.json.gz", "rest/jobmanager.log"]


@pytest.mark.parametrize("name", OF_FLINK)
def test_what_flink_told_is_recognised(tmp_path, name):
    """Saved answers, an archive of the history server, a log; with an ending that says nothing."""
    shutil.copy(DATA / name, tmp_path / "x.txt")
    found = read(tmp_path)

    expected = read_any(DATA / name).checkpoints_table()
    rows = found["checkpoints", "x"]
    assert [column for column in rows if column in ("id", "status")] == ["id", "status"]
    assert expected["id"].tolist() == rows["id"].tolist()
    assert expected["status"].tolist() == rows["status"].tolist()
    assert (expected["trigger_timestamp"] / 1e3).tolist() == rows["t_s"].tolist()


def test_names_in_a_bucket_that_climb(tmp_path, monkeypatch):
    """A bucket is no file system: its names are any text.  Nothing is written outside of the folder they are copied to."""
    names = (f"saved/jobs/{'a' * 32}.json", "saved/jobs/../../evil.json", f"saved/jobs/{'b' * 32}/../../../evil.json")
    for name in names:
        place = tmp_path / "bucket" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (batch,) = rows_of(TraceFile("x", str(tmp_path / "bucket"), names, "saved/"))

    assert "/plan is missing" in batch.to_pylist()[0]["reason"] or "Field required" in batch.to_pylist()[0]["reason"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_reasons_say_nothing_that_a_terminal_obeys(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"archive": [{"path": "/jobs/../\x1b[31m", "json": ""}]}))
    pd.DataFrame({"\x1b[31m": [1]}).to_parquet(tmp_path / "y.parquet")

    assert ["\\x1b[31m" in reason for reason in reasons(tmp_path)] == [True, True]
    assert all(c.isprintable() for reason in reasons(tmp_path) for c in reason)


def test_folders_of_answers(tmp_path):
    with zipfile.ZipFile(REST / "pressed.zip") as archive:
        archive.extractall(tmp_path / "saved")
    (tmp_path / "saved" / "kills.csv").write_text("kill_epoch_s\n7\n")
    found = read(tmp_path)

    assert {("checkpoints", "saved"), ("failures", "saved/kills")} == set(found)
    assert (
        read_any(REST / "pressed.zip").checkpoints_table()["id"].tolist()
        == found["checkpoints", "saved"]["id"].tolist()
    )


def test_logs_in_parts(tmp_path):
    """However they were rotated and packed."""
    text = LOG.read_text().splitlines(keepends=True)
    (tmp_path / "jm.log").write_text("".join(text[60:]))
    (tmp_path / "jm.log.1").write_text("".join(text[30:60]))
    (tmp_path / "jm.log.2.gz").write_bytes(gzip.compress("".join(text[:30]).encode()))
    shutil.copy(LOG, tmp_path / "whole.log")
    found = read(tmp_path)

    parts, complete = found["checkpoints", "jm"], found["checkpoints", "whole"]
    assert len(complete) > 5
    same = [column for column in complete if column not in ("trace", "file")]
    pd.testing.assert_frame_equal(parts[same].reset_index(drop=True), complete[same].reset_index(drop=True))


def test_jobs_of_one_cluster_are_traces_of_their_own(tmp_path):
    text = LOG.read_text()
    job = next(word for word in text.replace(".", " ").split() if len(word) == 32 and word.isalnum())
    (tmp_path / "jm.log").write_text(text + text.replace(job, "f" * 32))

    assert {("checkpoints", f"jm/{job}"), ("checkpoints", f"jm/{'f' * 32}")} == set(read(tmp_path))


def test_a_log_that_is_cut_off_keeps_its_beginning(tmp_path):
    data = gzip.compress(LOG.read_bytes())
    (tmp_path / "jm.log.gz").write_bytes(data[: len(data) * 2 // 3])
    found = read(tmp_path)

    assert len(found["checkpoints", "jm"]) > 0
    assert reasons(tmp_path) == ["is truncated: rows after this one are missing"]


def test_marked_anomalies(tmp_path):
    """Failures of the runs that the files are named after."""
    marked = {"cpu.csv": [["1970-01-01 00:00:10", "1970-01-01 00:01:00"], ["later", "never"]], "x.csv": []}
    (tmp_path / "w.json").write_text(json.dumps(marked))
    found = read(tmp_path)

    assert found["failures", "w"][["t_s", "lasts_s", "run"]].to_numpy().tolist() == [[10.0, 50.0, "cpu"]]
    assert reasons(tmp_path) == ["a window ends before it begins, or is not a time"]


def test_outages_in_parquet(tmp_path):
    """Intervals add up; a row that cannot be is in quarantine."""
    rows = {
        "failure_interval": [1000, 500, -1, 2000],
        "failure_duration": [10, 20, 30, 40],
        "failure_intensity": [0.5, 1.0, 0.1, 0.25],
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "o")
    found = read(tmp_path)

    assert (found["failures", "o"][["t_s", "lasts_s", "what"]].to_numpy().tolist()) == [
        [1.0, 0.01, "outage of 50%"],
        [1.5, 0.02, "outage of 100%"],
        [3.5, 0.04, "outage of 25%"],
    ]
    assert found["quarantine", "o"]["line"].tolist() == [3]


def bomb(inner, times):
    packed = io.BytesIO()
    with gzip.open(packed, "wb") as stream:
        for _ in range(times):
            stream.write(inner)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is no text, and nothing else we know"),
        (bytes(range(256)) * 9, "is no text, and nothing else we know"),
        ("t,rate\n1,2\n".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        ("é,rate\n1,2\n".encode("latin-1"), "its first line: is not UTF-8"),
        (b'{"format": "x"}', "has the format 'x', which ckptsim does not read"),
        (b'{"checkpoints": 3}', "is JSON, but not a recording of a Flink job"),
        (b'{"format": ', "is not JSON: Expecting value at line 1, column 12"),
        (b"[" * 100_000, "is nested more than 100 levels deep"),
        (b"PK\3\4 no zip", "is a damaged zip"),
        (b"PAR1 no Parquet", "is not a Parquet file, or a damaged one: "),
        (b"\x1f\x8b\x08\x00", "is truncated: rows after this one are missing"),
        (b"\x1f\x8b" + b"nonsense" * 9, "is damaged: later rows cannot be unpacked"),
        (bomb(b'{"a": "' + b"a" * (1 << 20), 3), "holds more than 2 MB: not read any further"),
        (b"2024-01-01 10:00:00,000 INFO  x - hello\n", "no lines of checkpoints ('Triggering checkpoint'"),
    ],
    ids=range(15),
)
def test_a_file_that_cannot_be_read_is_told_once(tmp_path, monkeypatch, content, message):
    """In one line, without the place of the copy it was read from; the file beside it is read."""
    monkeypatch.setattr(files, "MAX_JSON", 2 << 20)
    (tmp_path / "bad.csv").write_bytes(content)
    (tmp_path / "good.csv").write_text("t,rate\n1,2\n")
    found = read(tmp_path)

    (why,) = reasons(tmp_path)
    assert why.startswith(message)
    assert "\n" not in why
    assert "/tmp" not in why
    assert found["rates", "good"]["rate"].tolist() == [2.0]


def test_a_zip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.jobs.source.saved.FILES_LARGEST_BYTES", 2 << 20)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open(ANSWER, "w") as stream:
        for _ in range(3):
            stream.write(b" " * (1 << 20))

    (why,) = reasons(tmp_path)
    assert "holds more than 2097152 bytes" in why


def test_names_in_a_zip_that_lead_elsewhere(tmp_path):
    """Nothing is unpacked to a disk."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("../../outside/jobs/1/checkpoints.json", "{}")

    assert len(reasons(tmp_path)) == 1
    assert not (tmp_path.parent / "outside").exists()


def test_large_documents_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_JSON", 100)
    shutil.copy(REST / "archive.json.gz", tmp_path)

    assert reasons(tmp_path) == ["holds more than 0 MB: not read any further"]


STAMPS = pd.date_range("2023-11-14 12:00", periods=3, freq="s", tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("columns", "begin"),
    [
        ({"t_s": [1.0, 2.0, 3.0], "rate": [5, 6, 7]}, 1.0),
        ({"Time": STAMPS, "value": [5.0, 6.0, 7.0]}, 1_699_959_600.0),
        ({"Time": STAMPS.as_unit("ns"), "value": ["5", "6", "7"]}, 1_699_959_600.0),
        ({"ts": [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000], "rate": [5, 6, 7]}, 1_700_000_000.0),
    ],
    ids=["numbers", "time stamps", "texts", "milliseconds"],
)
def test_a_table_of_rates_in_parquet(tmp_path, columns, begin):
    """It was in quarantine, and the message about that ended in a traceback."""
    pd.DataFrame(columns).to_parquet(tmp_path / "load.parquet")
    found = read(tmp_path)

    assert list(found) == [("rates", "load")]
    assert [begin, begin + 1, begin + 2] == found["rates", "load"]["t_s"].tolist()
    assert found["rates", "load"]["rate"].tolist() == [5, 6, 7]


def test_a_missing_number_in_parquet_is_no_observation(tmp_path):
    pd.DataFrame({"t_s": [1.0, 2.0], "rate": [None, 6.0], "note": ['a "b", c', "d\ne"]}).to_parquet(
        tmp_path / "load.parquet"
    )

    assert read(tmp_path)["rates", "load"]["rate"].isna().tolist() == [True, False]


def test_a_table_in_parquet_that_nobody_knows_is_one_message(tmp_path):
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "load.parquet")

    assert reasons(tmp_path) == ["no known format has the columns a, b: name columns with --time and --value"]
