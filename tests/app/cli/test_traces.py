"""``ckptsim traces``: from a folder of files nobody vouches for to a sweep, with a message for each that is broken."""

import gzip
import json
import os

import pandas as pd
import pytest

from sim.app.cli.console import Console
from sim.app.cli.references import _show_tables, _traces_exit_code
from sim.app.verbs.traces import ReadTraces
from tests.app.cli.conftest import TINY

ROWS = "".join(f"{1000 + at},{100 + at % 7}\n" for at in range(60))
BROKEN = {
    "truncated.csv.gz": gzip.compress(
        ("t,rate\n" + "".join(f"{at},{at * 7919 % 100_003}\n" for at in range(30_000))).encode()
    )[:60_000],
    "swapped.csv": "rate,epoch_s\n" + "".join(f"{1000 + at},{500 + at * 7919 % 100}\n" for at in range(50)),
    "negative.csv": "epoch_s,rate\n1,5\n2,-5\n3,5\n",
    "back.csv": "epoch_s,rate\n1,5\n9,6\n2,5\n3,5\n",
    "long.csv": "epoch_s,rate\n1,5\n2," + "9" * 3_000_000 + "\n3,5\n",
    "bomb.json.gz": gzip.compress(b'{"a": "' + b"a" * (70 << 20), compresslevel=1),
    "empty.csv": "",
    "binary.csv": bytes(range(256)),
    "foreign.csv": "epoch_s,rate,name\n1,5,a\n2,5,é\n".encode("latin-1"),
    "wide.csv": "epoch_s,rate\n1,5\n".encode("utf-16"),
    "document.json": json.dumps({"a": 1}),
    "own.csv": "when,what\n1,5\n",
    "x..%2F..%2Foutside.csv": "epoch_s,event\n1,x\n",
    "good.csv.gz": gzip.compress(b"epoch_s,event\n1010,kill\n"),
}
REPORT = """\
back.csv, foreign.csv, good.csv and 2 more: times of 'epoch_s' are seconds, 'rate' is taken as records per second
good.csv.gz, x..%2F..%2Foutside.csv: times of 'epoch_s' are seconds
truncated.csv.gz: times of 't' are seconds, 'rate' is taken as records per second
bomb.json.gz: holds more than 64 MB: not read any further
back.csv: 1 row in quarantine, line 3: time is ahead of the rows after it
binary.csv: is no text, and nothing else we know
document.json: is a document without a series of rates: `ckptsim import` reads logs, answers and archives of a job
empty.csv: the file is empty
foreign.csv: 1 row in quarantine, line 3: is not UTF-8
good.csv, good.csv.gz: have the same trace name; renamed to good-1
long.csv: 1 row in quarantine, line 3: the line is too long
loop: is a link to a folder, or a broken one: not followed
negative.csv: 1 row in quarantine, line 3: rate is negative
own.csv: no known format has the columns when, what: name columns with --time and --value
swapped.csv: time goes back: 43 of the first 50 rows are not in order: are columns swapped, or is it not sorted? Not read
truncated.csv.gz: is truncated: rows after this one are missing
wide.csv: is UTF-16: save it as UTF-8
"""
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.mark.parametrize(
    "where",
    [pytest.param("local[2]", marks=[pytest.mark.slow, pytest.mark.xdist_group("spark")]), None],
    ids=["Spark", "here"],
)
def test_from_raw_files_to_a_sweep(ckptsim, tmp_path, monkeypatch, where):
    """Broken files are told one by one and cost nothing but themselves; windows of the others are replayed."""
    if where is None:
        monkeypatch.setattr("sim.studies.sweeps.spark_session.session", lambda *_: pytest.fail("Spark was started"))
        master = []
    else:
        pytest.importorskip("pyspark")
        master = ["--master", where, *(word for key, value in QUICK.items() for word in ("--conf", f"{key}={value}"))]
    raw = tmp_path / "raw"
    raw.mkdir()
    for name, content in BROKEN.items():
        (raw / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (raw / "good.csv").write_text("epoch_s,rate\n" + ROWS)
    (raw / "loop").symlink_to(raw)

    done = ckptsim(f"traces read {raw} --out {tmp_path}/tables", *master)
    assert set() == set(REPORT.splitlines()) ^ set(done.stderr.splitlines())
    assert (4, len(REPORT.splitlines())) == (done.exit_code, done.stderr.count("\n"))
    assert not (tmp_path.parent / "outside").exists()
    assert {"good", "good-1", "negative", "back", "long", "truncated", "foreign", "x.._2F.._2Foutside"} == {
        line.split()[0] for line in done.stdout.splitlines()[1:]
    }

    cut = ("traces", "windows", tmp_path / "tables", "--length", "3 s", "--trace", "good", "--count", "2", *master)
    done = ckptsim(*cut, "--cut", "load")
    assert (done.exit_code, done.stdout) == (0, "2 windows of 1 traces in windows.csv\n")

    (tmp_path / "job.yaml").write_text(TINY)
    (tmp_path / "sweep.yaml").write_text("scenario: job.yaml\nwindows: {source: source, file: windows.csv}\n")
    done = ckptsim("sweep sweep.yaml --jobs 1 --out swept")
    assert done.exit_code == 0
    assert (tmp_path / "swept").is_dir()


def test_one_file_that_nobody_knows_is_one_line(ckptsim, tmp_path):
    """A message about a file as a whole, and no other, ended in a traceback."""
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "x.parquet")
    done = ckptsim(f"traces read {tmp_path}/x.parquet --out {tmp_path}/tables")

    assert (done.exit_code, done.stderr) == (
        3,
        "x.parquet: no known format has the columns a: name columns with --time and --value\n",
    )


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("read nowhere", 3, "nowhere: no such file or folder"),
        ("read empty", 3, "empty: no trace files found"),
        ("read file --out file", 2, "--out: file cannot be created: file is a file"),
        (
            "read file --out /proc/tables",
            2,
            "--out: /proc/tables cannot be created in /proc: no folders can be created there",
        ),
        ("read empty --time when", 2, "--value: say which column"),
        ("read empty --per '0 s' --value v", 2, "--per: expected more than 0 s"),
        ("read empty --time-unit fortnight", 2, "--time-unit: "),
        ("read file --master here --conf a=b", 2, "--conf is for Spark: say another --master"),
        ("windows empty", 3, "empty: has no tables of traces: run `ckptsim traces read` first"),
        ("windows empty --cut mood", 2, "--cut: expected time, bursts, load, failures, not 'mood'"),
        ("windows empty --length '0 s'", 2, "--length: expected more than 0 s"),
    ],
)
def test_what_needs_no_spark_to_be_refused(ckptsim, tmp_path, monkeypatch, options, code, message):
    """One line, before anything is started."""
    monkeypatch.setattr("sim.studies.sweeps.spark_session.session", lambda *_: pytest.fail("Spark was started"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    done = ckptsim(f"traces {options}")

    assert (code, 1) == (done.exit_code, done.stderr.count("\n")), done.stderr
    assert message in done.stderr
    assert not os.listdir(tmp_path / "empty")


@pytest.mark.parametrize(("kinds", "code"), [(["rates"], 0), (["rates", "quarantine"], 4), (["quarantine"], 3)])
def test_the_summary_as_json(capsys, kinds, code):
    """All counts, and the exit code of the table."""
    count = {"trace": "a", "file": "a.csv", "reason": None, "count": 2, "line": 1}
    counts = pd.DataFrame([{**count, "kind": kind} for kind in kinds])

    found = ReadTraces(counts, ("hidden: 1 (.x)",))
    Console(_show_tables, as_json=True).result(found)

    assert code == _traces_exit_code(found)
    assert {"counts": [{**count, "kind": kind} for kind in kinds], "remarks": ["hidden: 1 (.x)"]} == json.loads(
        capsys.readouterr().out
    )
