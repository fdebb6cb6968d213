"""The measure of memory: copies of a trace that follow each other, and processes told apart."""

import gzip
import os

import pytest

from benchmarks.trace_scale import Use, repeat


@pytest.mark.parametrize(("one_file", "names"), [(False, 3), (True, 1)])
def test_copies_follow_each_other_in_time(tmp_path, one_file, names):
    """None of their rows is out of order, whether they are one file or several."""
    trace = tmp_path / "t.csv.gz"
    trace.write_bytes(gzip.compress(b"epoch_s,rate\n10,1\n12,2\n"))
    (tmp_path / "raw").mkdir()
    rows = repeat(trace, tmp_path / "raw", 3, one_file=one_file)

    files = sorted((tmp_path / "raw").iterdir())
    lines = "".join(gzip.decompress(file.read_bytes()).decode() for file in files).splitlines()
    assert (6, names) == (rows, len(files))
    assert names == lines.count("epoch_s,rate")
    assert [line for line in lines if line != "epoch_s,rate"] == ["10,1", "12,2", "13,1", "15,2", "16,1", "18,2"]


def test_memory_is_that_of_the_role():
    use = Use(os.getpid(), None)
    use.look()

    assert use.most_mb["driver Python"] > 10
    assert [use.most_mb["driver JVM"], use.most_mb["executor JVM"]] == [0.0, 0.0]
    assert use.cpu_s > 0
