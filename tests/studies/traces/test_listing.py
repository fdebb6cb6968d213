"""Names only: each file is a trace of its own, and what is left out is told."""

import os

import pytest

from sim.studies.traces.listing import list_files, trace_name
from sim.studies.traces.parsing import TraceFileError


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
