"""Files become tables without Spark; tests/studies/traces/test_pipeline.py holds that Spark writes the same."""

import os

import pandas as pd
import pytest

from sim.studies.traces import conversion, pipeline
from sim.studies.traces.conversion import read_traces_here
from sim.studies.traces.listing import TraceFile, list_files, trace_name
from sim.studies.traces.parsing import TraceFileError
from tests.studies.traces.conftest import write_traces


def read(folder, out):
    return read_traces_here(list_files(str(folder)).files, str(out))


def test_every_row_is_somewhere(tmp_path):
    (tmp_path / "raw").mkdir()
    write_traces(tmp_path / "raw")

    counts = read(tmp_path / "raw", tmp_path / "out")
    notes = counts[counts["kind"] == "note"].set_index("trace")["reason"]
    counts = counts[counts["kind"] != "note"]

    assert notes["a/load"] == "times of 'epoch_s' are seconds, 'rate' is taken as records per second"
    assert {"a/all_kills", "a/kills", "a/load", "a/load_chk7", "arrivals"} == set(notes.index)
    assert [(row.trace, row.kind, row.count) for row in counts[["trace", "kind", "count"]].itertuples(index=False)] == [
        ("a/all_kills", "failures", 1),
        ("a/kills", "failures", 2),
        ("a/load", "quarantine", 1),
        ("a/load", "quarantine", 1),
        ("a/load", "rates", 120),
        ("a/load_chk7", "rates", 3),
        ("arrivals", "arrivals", 5),
        ("notes", "quarantine", 1),
    ]
    rates = pd.read_parquet(tmp_path / "out" / "rates")
    arrived = rates[rates["trace"] == "arrivals"]
    assert list(arrived[["t_s", "rate"]].itertuples(index=False, name=None)) == [
        (0, 3),
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 0),
        (8_999_999, 0),
        (9_000_000, 1),
    ]


def test_new_tables_replace_the_earlier_ones(tmp_path):
    """All of them: a trace of the run before is gone."""
    (tmp_path / "first.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "first.csv", tmp_path / "out")
    (tmp_path / "second.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "second.csv", tmp_path / "out")

    assert sorted(place.name for place in (tmp_path / "out" / "rates").iterdir()) == ["_SUCCESS", "trace=second"]


def test_an_interrupted_run_leaves_the_earlier_tables(tmp_path, monkeypatch):
    (tmp_path / "load.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "load.csv", tmp_path / "out")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "rows_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(tmp_path / "load.csv", tmp_path / "out")

    assert sorted(place.name for place in (tmp_path / "out").iterdir()) == [
        "failures",
        "quarantine",
        "rates",
    ]
    assert pd.read_parquet(tmp_path / "out" / "rates")["rate"].tolist() == [2.0]


def test_tables_that_cannot_be_written_are_one_line(tmp_path):
    (tmp_path / "load.csv").write_text("epoch_s,rate\n1,2\n")
    (tmp_path / "out").write_text("in the way")

    with pytest.raises(TraceFileError, match=r"^the tables cannot be written: [^\n]+$"):
        read(tmp_path / "load.csv", tmp_path / "out")


@pytest.mark.parametrize(("most", "small"), [(10, True), (9, False)])
def test_files_are_small_together(monkeypatch, most, small):
    monkeypatch.setattr(conversion, "MAX_BYTES", most)

    assert small == conversion.files_are_small([TraceFile(name, "folder", name, size=5) for name in "ab"])


@pytest.mark.parametrize(("most", "small"), [(10, True), (9, False)])
def test_tables_are_small_together(tmp_path, monkeypatch, most, small):
    monkeypatch.setattr(conversion, "MAX_BYTES", most)
    for name in "ab":
        (tmp_path / "rates" / f"trace={name}").mkdir(parents=True)
        (tmp_path / "rates" / f"trace={name}" / "part-00000.parquet").write_bytes(b"12345")

    assert small == conversion.tables_are_small(str(tmp_path))


def test_buckets_are_never_read_here():
    assert not conversion.files_are_small([TraceFile("a", "s3://bucket", "a.csv")])
    assert not conversion.tables_are_small("s3://bucket/tables")


def listed(folder, *names, **options):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    found = list_files(str(folder), **options)
    return {file.trace for file in found.files}, found.notes


def test_names_that_meet_stay_apart(tmp_path):
    """Neither file is lost in the other's folder; which is which is told."""
    files, notes = listed(tmp_path, "a.csv", "a.csv.gz", "a.json", "a b.csv", "a_b.csv")

    assert {"a", "a-1", "a-2", "a_b", "a_b-1"} == files
    assert [line for line in notes if line.startswith("a.csv")] == [
        "a.csv, a.csv.gz, a.json: have the same trace name; renamed to a-1, a-2"
    ]


def test_what_is_not_read_is_told(tmp_path):
    _, notes = listed(tmp_path, "README.md", "a/README.md", "LICENSE", ".hidden.csv", "_staging/x.parquet", "a.csv")

    assert notes == ["skipped, not traces: 3 (LICENSE, README.md)", "hidden: 2 (.hidden.csv, x.parquet)"]


def test_links_in_a_circle(tmp_path):
    """Folders are read once; a link to one, or that leads nowhere or to itself, is named."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.csv")
    files, notes = listed(tmp_path, "a/x.csv")

    assert {"a/x"} == files
    link = "is a link to a folder, or a broken one: not followed"
    assert [f"a/up: {link}", f"gone.csv: {link}", "pipe.csv: is not a regular file", f"self: {link}"] == notes


def test_tables_in_the_folder_that_is_read_are_no_traces(tmp_path):
    files, _ = listed(tmp_path, "a.csv", "out/rates/trace=a/x.parquet", exclude=str(tmp_path / "out"))

    assert {"a"} == files


def test_one_file(tmp_path):
    listed(tmp_path, "a.csv", "b.csv")

    assert [(file.trace, file.path) for file in list_files(str(tmp_path / "a.csv")).files] == [("a", "a.csv")]


@pytest.mark.parametrize(
    ("names", "message"), [([], "no trace files found"), (["README.md"], r"no trace files found; skipped, not traces")]
)
def test_nothing_to_read(tmp_path, names, message):
    with pytest.raises(TraceFileError, match=message):
        listed(tmp_path, *names)
    with pytest.raises(TraceFileError, match="no such file or folder"):
        list_files(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("iot/chk10000.csv.gz", "iot/chk10000"),
        ("../../etc/passwd.csv", "_/_/etc/passwd"),
        ("..%2F..%2Fetc.csv", "%2F..%2Fetc".replace("%", "_")),
        ("a b/.hidden=x.csv", "a_b/hidden_x"),
        ("c:\\windows.csv", "c__windows"),
        ("2020-01-01.csv", "2020-01-01"),
    ],
)
def test_names_of_traces_are_safe(path, expected):
    """They become folders."""
    assert expected == trace_name(path)


def test_names_of_traces_are_short():
    """A folder's name has 255 bytes; what would be longer stays different from its neighbours."""
    long = [trace_name(f"{'ü' * 90}/{'deep/' * 40}{i}.csv") for i in range(3)]

    assert len(set(long)) == 3
    assert all(len(name.encode()) < 200 for name in long)


def test_a_trace_has_the_bytes_of_its_file(tmp_path):
    (tmp_path / "a").mkdir()
    for name, size in (("b.csv", 3), ("a/x.csv", 5)):
        (tmp_path / name).write_bytes(b"x" * size)

    assert {file.trace: file.size for file in list_files(str(tmp_path)).files} == {"b": 3, "a/x": 5}
    assert [file.size for file in list_files(str(tmp_path / "a" / "x.csv")).files] == [5]


SMALL = 15_000


def split(sizes, slots):
    """How many files each task reads."""
    files = [TraceFile(str(number), "folder", str(number), size) for number, size in enumerate(sizes)]
    found = pipeline.shares(files, slots)
    assert files == [file for share in found for file in share]
    return [len(share) for share in found]


@pytest.mark.parametrize(
    ("files", "slots", "expected"),
    [(40, 2, [20, 20]), (40, 100, [1] * 40), (1, 2, [1]), (100, 3, [33, 34, 33]), (400, 2, [52] * 6 + [53, 35])],
)
def test_small_files_share_tasks(files, slots, expected):
    """A task per slot, and more of them where one would read for long."""
    assert expected == split([SMALL] * files, slots)


def test_a_large_file_has_a_task_of_its_own():
    assert split([SMALL] * 20 + [1 << 30] + [SMALL] * 20, 2) == [20, 1, 20]


def test_tasks_are_not_too_many(monkeypatch):
    monkeypatch.setattr(pipeline, "MAX_TASKS", 4)

    assert split([1 << 30] * 40, 2) == [10] * 4
