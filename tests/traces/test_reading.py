"""Files nobody vouches for: good rows in their table, all others in quarantine with the reason, none lost."""

import gzip
import io
import zlib

import pyarrow as pa
import pytest

from sim.traces import lines as room
from sim.traces import reading
from sim.traces.reading import read_rows, trace_name


def read(text, *, packed=False, trace="t"):
    data = text if isinstance(text, bytes) else text.encode()
    table = pa.Table.from_batches(read_rows(trace, io.BytesIO(data), packed=packed)).to_pandas()
    return {kind: rows.dropna(axis=1, how="all").drop(columns=["kind", "trace"]) for kind, rows in table.groupby("kind", sort=False)}


def reasons(text, **options):
    return list(read(text, **options).get("quarantine", {"reason": []})["reason"])


def test_rates_with_what_was_observed_beside_them():
    """A blank is no observation: neither a row nor a fault."""
    found = read("epoch_s,throughput_rec_s,latency_ms,consumer_lag_rec\n10,100.5,7,0\n11,,,\n12,90,,3\n")

    assert ["rates"] == list(found)
    assert [[2, 10.0, 100.5, 7.0, 0.0]] == found["rates"].iloc[:1].to_numpy().tolist()
    assert [10.0, 12.0] == found["rates"]["t_s"].tolist()


@pytest.mark.parametrize(
    ("text", "kind", "column", "expected"),
    [
        ("date,messages\n2019-10-06 22:00:00,100\n2019-10-06 22:05:00,200\n", "rates", "t_s", [1570399200.0, 1570399500.0]),
        ("timestamp,value\n2015-02-26 21:42:53,104\n", "rates", "rate", [104.0]),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600,4808\n", "arrivals", "t_s", [1700158623.97996]),
        ("value,runtime,starttime,VM_id\n190.0,85,2023-09-02 22:20:45.530,a\n95,1,2023-09-02 22:20:45,b\n", "factors", "speed", [190, 95]),
        ("system,node,event_type,start_epoch_s,stop_epoch_s,end_reason\n1,1.0,0,10,15,x\n1,1.0,1,15,90,y\n", "failures", "lasts_s", [5.0]),
        ("chk_interval_ms,kill_epoch_s\n10000,77\n", "failures", "what", ["interval 10000 ms"]),
        ("epoch_s,event,detail\n5,inject_delay,x\n", "failures", "what", ["inject_delay"]),
        ("1000000,,1,2,3,0,u,0,2,0,0,0,1\n2000000,,1,2,3,1,u,0,2,0,0,0,1\n", "arrivals", "t_s", [1.0]),
    ],
)
def test_formats_are_told_by_their_columns(text, kind, column, expected):
    found = read(text)

    assert [kind] == list(found)
    told = found[kind][column].tolist()
    assert expected == (told if isinstance(expected[0], str) else pytest.approx(told))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("3,-1", "rate is negative"),
        ("3,fast", "rate is no number"),
        ("3,inf", "rate is not finite"),
        ("soon,7", "t is no time"),
        ("1,7", "time goes back"),
        ("2,7", "time goes back"),
        ("3,7,8", "has 3 fields, not 2"),
        ("3", "has 1 fields, not 2"),
        ('3,"7', "quotes are not closed"),
    ],
)
def test_a_row_that_cannot_be_is_in_quarantine(row, reason):
    """With its line; the rows around it are not."""
    found = read(f"t,rate\n1,5\n2,6\n{row}\n9,7\n")

    assert [1.0, 2.0, 9.0] == found["rates"]["t_s"].tolist()
    ((line, why, text),) = found["quarantine"].to_numpy().tolist()
    assert (4, reason, row) == (line, why, text)


def test_columns_in_another_order():
    """They are told by name."""
    assert read("t,rate\n1,5\n")["rates"]["rate"].tolist() == read("rate,t\n5,1\n")["rates"]["rate"].tolist()


def test_blocks_know_each_other(monkeypatch):
    """Whether time goes back does not depend on where a block ends."""
    text = "t,rate\n" + "".join(f"{t},1\n" for t in (1, 2, 5, 3, 4, 6, 6, 7))
    whole = reasons(text)
    monkeypatch.setattr(reading, "BLOCK_ROWS", 2)

    assert ["time goes back"] * 3 == whole == reasons(text)


def test_a_line_of_any_length(monkeypatch):
    """Only its beginning is ever held; the lines after it are read."""
    monkeypatch.setattr(room, "BLOCK", 1000)
    found = read(b"t,rate\n1,5\n" + b"2," + b"9" * 3_000_000 + b"\n3,6\n")

    assert [1.0, 3.0] == found["rates"]["t_s"].tolist()
    assert [(3, "the line is too long", 200)] == [(line, why, len(text)) for line, why, text in found["quarantine"].to_numpy().tolist()]


def test_packed_files(tmp_path):
    """One member after the other, as `cat a.gz b.gz` makes them."""
    data = gzip.compress(b"t,rate\n1,5\n") + gzip.compress(b"2,6\n")

    assert [5.0, 6.0] == read(data, packed=True)["rates"]["rate"].tolist()


def test_a_truncated_file_keeps_what_can_be_read():
    data = gzip.compress(("t,rate\n" + "".join(f"{t},{t * 7919 % 100_003}\n" for t in range(60_000))).encode())
    found = read(data[: len(data) // 2], packed=True)

    assert len(found["rates"]) > 10_000
    assert ["is truncated: what follows this row is missing"] == found["quarantine"]["reason"].tolist()


def test_what_only_looks_packed():
    assert ["is damaged: not gzip from here on"] == reasons(b"\x1f\x8b" + b"nonsense" * 9, packed=True)


def test_a_bomb_is_not_unpacked(monkeypatch):
    """It stops long before the disk or the memory is full."""
    monkeypatch.setattr(room, "HARMLESS", 1 << 20)
    bomb = gzip.compress(b"t,rate\n1,5\n" + b"0" * (1 << 24))

    assert ["expands more than 200 times: not read any further"] == [why for why in reasons(bomb, packed=True) if "expands" in why]


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "the file is empty"), ("a,b\n1,2\n", "no known format has the columns a, b"), ("\0\1\2", "no known format")],
)
def test_a_file_nobody_knows_is_named_once(text, told):
    (why,) = reasons(text)

    assert why.startswith(told)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("iot/chk10000.csv.gz", "iot/chk10000"),
        ("../../etc/passwd.csv", "_/_/etc/passwd"),
        ("a b/.hidden=x.csv", "a_b/hidden_x"),
        ("c:\\windows.csv", "c__windows"),
    ],
)
def test_names_of_traces_are_safe(path, expected):
    """They become folders."""
    assert expected == trace_name(path)


def test_unpacking_holds_a_block_at_a_time():
    """However much one block of packed data gives."""
    data = zlib.compress(b"\n" * 10_000_000, wbits=31)

    assert max(len(block) for block in room._unpacked(io.BytesIO(data))) <= room.BLOCK
