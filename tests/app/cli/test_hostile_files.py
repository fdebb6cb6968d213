"""`ckptsim import` of folders, archives, recordings and logs that mean harm: one line, in time and in memory."""

import gzip
import json
import os
import tarfile
import time
import zipfile

import pytest

from sim.model.schema.study import loads
from tests.app.cli.hostile import is_plain

JOB = "a" * 32
TRIGGERED = (
    "2026-01-01 00:00:0{0},000 INFO x - Triggering checkpoint {0} (type=x) @ 17600000{0}0000 for job " + JOB + ".\n"
)
DONE = " (9 bytes, checkpointDuration=7 ms, finalizationTime=0 ms).\n"
COMPLETED = "2026-01-01 00:00:0{0},500 INFO x - Completed checkpoint {0} for job " + JOB + DONE
LOG = "".join(line.format(number) for number in range(1, 5) for line in (TRIGGERED, COMPLETED))
DEEP = "[" * 200_000
LISTS = "[" + "[]," * 7_000_000 + "1]"


def archive(*entries):
    return json.dumps({"archive": [{"path": path, "json": text} for path, text in entries]})


def zipped(path, *files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files:
            made.writestr(name, content)


def tarred(path):
    with tarfile.open(path, "w") as made:
        info = tarfile.TarInfo("../../jobs/evil.json")
        info.size = 0
        made.addfile(info)


def folder(path, make):
    (path / "jobs").mkdir(parents=True)
    make(path / "jobs")


def two_jobs(path):
    for number in range(3000):
        path.joinpath(f"{number:032x}.json").write_text("{}")


# name -> how the source is made, what is said of it
SOURCES = {
    "a zip of painted names": (
        lambda p: zipped(p, (f"jobs/{JOB}.json", "{}"), ("../\x1b[31m\u202e.json", "{}")),
        "\\x1b[31m\\u202e",
    ),
    "a zip that inflates": (lambda p: zipped(p, (f"jobs/{JOB}.json", LISTS)), "would take more than 1 GiB of memory"),
    "a tar": (tarred, ": "),
    "gzip that inflates": (
        lambda p: p.write_bytes(gzip.compress(LISTS.encode())),
        "would take more than 1 GiB of memory",
    ),
    "an archive that climbs": (
        lambda p: p.write_text(archive((f"/jobs/{JOB}", "{}"), ("/jobs/../../evil", "{}"))),
        "leads elsewhere",
    ),
    "an archive of depth": (lambda p: p.write_text(archive((f"/jobs/{JOB}", DEEP))), "nested more than 100 levels"),
    "an archive that inflates": (
        lambda p: p.write_text(archive((f"/jobs/{JOB}", LISTS))),
        "would take more than 1 GiB of memory",
    ),
    "an archive of painted names": (lambda p: p.write_text(archive(("/jobs/\x1b[31m", "no JSON"))), "contains no job"),
    "a format that paints": (
        lambda p: p.write_text(json.dumps({"format": "\x1b[31m" + "x" * 9999})),
        "has the format '\\x1b[31mxxx",
    ),
    "a link to itself": (lambda p: p.symlink_to(p), "cannot be read"),
    "a folder of pipes": (lambda p: folder(p, lambda jobs: os.mkfifo(jobs / f"{JOB}.json")), "holds no saved answers"),
    "a folder of thousands of jobs": (lambda p: folder(p, two_jobs), "and 2992 more"),
    "a log of thousands of jobs": (
        lambda p: p.write_text("".join(LOG.replace(JOB, f"{n:032x}") for n in range(3000))),
        "and 2992 more",
    ),
    "a log without end of line": (
        lambda p: p.write_text("Triggering checkpoint 1 " * 500_000),
        "no lines of checkpoints",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_that_means_harm(ckptsim, tmp_path, name):
    make, message = SOURCES[name]
    make(tmp_path / "source")
    before = sorted(tmp_path.rglob("*"))
    begun = time.process_time()
    done = ckptsim(f"import {tmp_path}/source -o {tmp_path}/x.yaml")

    assert (done.exit_code, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert is_plain(done.stderr)
    assert len(done.stderr) < 1000
    assert before == sorted(tmp_path.rglob("*"))
    assert time.process_time() - begun < 5


def test_a_log_that_paints(ckptsim, tmp_path):
    """Its vertices are named, without what a terminal would obey, and without secrets."""
    tasks = (
        f"x - Source: \x1b[31m\u202e password=hunter2 {n} (1/1) (ab_0) switched from CREATED to SCHEDULED\n"
        for n in range(2)
    )
    (tmp_path / "x.log").write_text("".join(tasks) + LOG)
    done = ckptsim(f"import {tmp_path}/x.log")

    assert done.exit_code == 0
    assert loads(done.stdout, "x").scenarios
    assert is_plain(done.stdout + done.stderr)
    assert "hunter2" not in done.stdout + done.stderr


def test_folders_of_recordings_that_keep_their_reader_waiting(ckptsim, tmp_path):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    done = ckptsim(f"validate {tmp_path}")

    assert done.exit_code == 3
    assert done.stderr.count("is not a regular file") == 2
    for place in ("a.json", "b.json"):
        assert "is a pipe or a device" in ckptsim(f"validate {tmp_path}/{place}").stderr
