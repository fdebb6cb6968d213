"""CSV files of others: what cannot be read is told with the file's line, whoever reads it."""

import pytest

from sim.scenario import ScenarioError, loads

BASE = """\
# What then?
job:
  a: {source: {rate: %s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""
READERS = {
    "rates": BASE % "{trace: t.csv, column: v}",
    "faults": BASE % "1k/s" + "faults: [{kill: b, trace: t.csv, column: v}]\n",
    "speeds": BASE % "1k/s" + "storage: {dfs: {nodes: 3, slow: {trace: t.csv, column: v}}}\n",
}


def read(text, folder, reader):
    (folder / "t.csv").write_bytes(text.encode())
    return loads(READERS[reader], "s", folder=folder).scenarios[0]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("text", "line"), [("t,v\n0,1\n1," + "2" * 200_000 + "\n", 3), ("t," + "v" * 200_000 + "\n0,1\n", 1)])
def test_a_field_without_end_is_told_with_its_line(tmp_path, reader, text, line):
    with pytest.raises(ScenarioError) as refused:
        read(text, tmp_path, reader)

    assert f"t.csv:{line}: field larger than field limit" in str(refused.value)


@pytest.mark.parametrize("reader", READERS)
def test_lines_end_as_they_like(tmp_path, reader):
    """CR alone, as old spreadsheets write it, is a line's end as well."""
    text = "t,v\n0,1\n1,2\n2,3\n"

    assert read(text, tmp_path, reader) == read(text.replace("\n", "\r"), tmp_path, reader)
