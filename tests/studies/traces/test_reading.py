"""Files nobody vouches for: good rows in their table, all others in quarantine with the reason, none lost."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pytest

from sim.model.series.columns import EXPECTED_TIMES
from sim.studies.traces import parsing as room
from sim.studies.traces import reading
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.parsing import AHEAD, BACK, TraceContent, out_of_order
from sim.studies.traces.reading import read_rows


def read(text, trace="t", **chosen):
    """Kind of row -> its table, with the columns that have anything in them."""
    data = text if isinstance(text, bytes) else text.encode()
    table = pa.Table.from_batches(
        read_rows(TraceFile(trace, "", "t.csv"), TraceContent(io.BytesIO(data)), Choices(**chosen))
    ).to_pandas()
    same = ["kind", "trace", "file"]
    return {
        kind: rows.dropna(axis=1, how="all").drop(columns=same)
        for kind, rows in table.groupby("kind", sort=False)
        if kind != "note"
    }


def reasons(text, **chosen):
    return list(read(text, **chosen).get("quarantine", {"reason": []})["reason"])


def test_rates():
    """A blank is a row without an observation: when the trace begins does not depend on it."""
    found = read("epoch_s,throughput_rec_s,latency_ms\n9,,\n10,100.5,7\n12,90,\n")

    assert list(found) == ["rates"]
    np.testing.assert_array_equal([[2, 9, np.nan], [3, 10, 100.5]], found["rates"].iloc[:2].to_numpy())


@pytest.mark.parametrize(
    ("text", "kind", "column", "expected"),
    [
        (
            "date,messages\n2019-10-06 22:00:00,100\n2019-10-06 22:05:00,200\n",
            "rates",
            "t_s",
            [1570399200.0, 1570399500.0],
        ),
        ("timestamp,value\n2015-02-26 21:42:53,104\n", "rates", "rate", [104.0]),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600,4808\n", "arrivals", "t_s", [1700158623.97996]),
        (
            "system,node,event_type,start_epoch_s,stop_epoch_s,end_reason\n1,1.0,0,10,15,x\n1,1.0,1,15,90,y\n",
            "failures",
            "t_s",
            [10.0],
        ),
        ("chk_interval_ms,kill_epoch_s\n10000,77\n", "failures", "run", ["chk10000"]),
        ("epoch_s,event,detail\n5,inject_delay,x\n", "failures", "t_s", [5.0]),
        ("1700000000123,7\n", "own", "t_s", [1700000000.123]),
        ("Time;Value\n5;1\n", "rates", "rate", [1.0]),
    ],
)
def test_formats_are_told_by_their_columns(text, kind, column, expected):
    found = read(text, **({"time": "0", "value": "1"} if kind == "own" else {}))
    kind = "rates" if kind == "own" else kind

    assert [kind] == [name for name in found if name != "passed"]
    values = found[kind][column].tolist()
    assert expected == (values if isinstance(expected[0], str) else pytest.approx(values))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("3,-1", "rate is negative"),
        ("3,fast", "rate is not a number"),
        ("3,inf", "rate is not finite"),
        ("soon,7", "t is not a time"),
        ("1,7", "time goes back"),
        ("99,7", "time is ahead of the rows after it"),
        ("2,7", "time goes back"),
        ("3,7,8", "does not have 2 fields"),
        ("3", "does not have 2 fields"),
        ('3,"7', "quotes are not closed"),
    ],
)
def test_a_row_that_cannot_be_is_in_quarantine(row, reason):
    """With its line; the rows around it are not."""
    found = read(f"t,rate\n1,5\n2,6\n{row}\n9,7\n")

    assert found["rates"]["t_s"].tolist() == [1.0, 2.0, 9.0]
    ((line, why, text),) = found["quarantine"].to_numpy().tolist()
    assert (4, reason, row) == (line, why, text)
    assert found["rates"]["line"].tolist() == [2, 3, 5]


def test_events_of_tasks():
    """Submissions arrive; tasks that are evicted, fail or are lost are failures; how many others there are is told."""
    rows = "".join(f"{at}000000,,1,2,{at},{event},u,0,2,0,0,0,1\n" for at, event in enumerate("0123456780"))
    found = read(rows)

    assert found["arrivals"]["t_s"].tolist() == [0.0, 9.0]
    assert found["failures"]["t_s"].tolist() == [2.0, 3.0, 6.0]
    assert list(found["passed"].itertuples(index=False, name=None)) == [
        ("neither the submission of a task nor its failure", 5)
    ]


def test_events_belong_to_the_run_that_their_file_is_named_after():
    assert read("epoch_s,event\n5,delay\n", trace="a/1_base_events")["failures"]["run"].tolist() == ["1_base"]


def test_columns_in_another_order():
    """They are told by name."""
    assert read("t,rate\n1,5\n")["rates"]["rate"].tolist() == read("rate,t\n5,1\n")["rates"]["rate"].tolist()


def test_blocks_know_each_other(monkeypatch):
    """Which rows are out of order does not depend on where a block ends; each stands in quarantine once."""
    times = [*range(1000), 5000, *range(1000, 2000), 1500, 1501, *range(2000, 2500)]
    text = "t,rate\n" + "".join(f"{t},1\n" for t in times)
    expected = ["time is ahead of the rows after it", "time goes back", "time goes back"]
    for rows in (50_000, 117, 991):  # 991: one ends with the row that is ahead
        monkeypatch.setattr(reading, "BLOCK_ROWS", rows)
        found = read(text)

        assert expected == found["quarantine"]["reason"].tolist()
        assert [*range(2500)] == found["rates"]["t_s"].tolist()


def test_swapped_columns_are_noticed():
    """A series whose times hardly ever go on is none, whatever its columns are called; the same the other way round is read."""
    rows = "".join(f"{1000 + at},{500 + at * 7919 % 100}\n" for at in range(300))

    (why,) = reasons("rate,epoch_s\n" + rows)
    assert why.startswith("time goes back: ")
    assert "are columns swapped" in why
    assert len(read("epoch_s,rate\n" + rows)["rates"]) == 300


def test_what_is_held_is_bounded_by_characters_too(monkeypatch):
    """Lines may be long."""
    monkeypatch.setattr(reading, "BLOCK_CHARACTERS", 100_000)
    text = "t,rate,note\n" + "".join(f"{t},1,{'x' * 1000}\n" for t in range(1000))
    batches = list(read_rows(TraceFile("t", "", "t.csv"), TraceContent(io.BytesIO(text.encode()))))

    assert sum(len(batch) for batch in batches if batch.column("kind")[0].as_py() == "rates") == 1000
    assert max(len(batch) for batch in batches) <= 100


def test_a_line_of_any_length():
    """Only its beginning is ever held; the lines after it are read."""
    found = read(b"t,rate\n1,5\n" + b"2," + b"9" * 3_000_000 + b"\n3,6\n")

    assert found["rates"]["t_s"].tolist() == [1.0, 3.0]
    assert [(line, why, len(text)) for line, why, text in found["quarantine"].to_numpy().tolist()] == [
        (3, "the line is too long", 200)
    ]


def test_a_line_that_is_too_long_for_a_row_and_not_for_a_block():
    assert reasons("t,rate\n1,5\n2," + "9" * 100_000 + "\n3,6\n") == ["the line is too long"]


def test_packed_files():
    """One member after the other, as `cat a.gz b.gz` makes them."""
    data = gzip.compress(b"t,rate\n1,5\n") + gzip.compress(b"2,6\n")

    assert read(data)["rates"]["rate"].tolist() == [5.0, 6.0]


def test_a_truncated_file_keeps_what_can_be_read():
    data = gzip.compress(("t,rate\n" + "".join(f"{t},{t * 7919 % 100_003}\n" for t in range(60_000))).encode())
    found = read(data[: len(data) // 2])

    assert len(found["rates"]) > 10_000
    assert found["quarantine"]["reason"].tolist() == ["is truncated: rows after this one are missing"]


def test_a_bomb_is_not_unpacked(monkeypatch):
    """It stops long before the disk or the memory is full."""
    monkeypatch.setattr(room, "MAX_BYTES_AT_ANY_RATIO", 1 << 20)
    bomb = gzip.compress(b"t,rate\n1,5\n" + b"0" * (1 << 24))

    assert [why for why in reasons(bomb) if "expands" in why] == ["expands more than 200 times: not read any further"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n1,2\n", "no known format has the columns a, b: name columns with --time and --value"),
        ("t,rate\n", "there are no rows under the names of its columns"),
        ("t,rate,rate\n1,2,3\n", "has the column 'rate' twice"),
        ("epoch_s,chk_interval_ms,job_uptime_s\n1,2,3\n", "no known format has the columns epoch_s"),
    ],
)
def test_a_file_nobody_knows_is_named_once(text, message):
    (why,) = reasons(text)

    assert why.startswith(message)


def test_rows_in_a_foreign_encoding_are_named():
    """Their neighbours are read."""
    found = read("t,rate,note\n1,5,a\n2,6,é\n3,7,c\n".encode("latin-1"))

    assert found["rates"]["t_s"].tolist() == [1.0, 3.0]
    assert list(found["quarantine"][["line", "reason"]].itertuples(index=False, name=None)) == [(3, "is not UTF-8")]


def notes(text, **chosen):
    data = TraceContent(io.BytesIO(text.encode()))
    table = pa.Table.from_batches(read_rows(TraceFile("t", "", "t.csv"), data, Choices(**chosen))).to_pandas()
    return table["reason"][table["kind"] == "note"].tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Time,value\n1700000000000,7\n",
            "times of 'Time' are epoch milliseconds, 'value' is taken as records per second",
        ),
        ("t_ms,rate\n0,7\n1500,7\n", "times of 't_ms' are milliseconds, 'rate' is taken as records per second"),
        (
            "date,requests\n2023-11-14 10:00,7\n",
            "times of 'date' are ISO 8601 without a zone, taken as UTC, 'requests' is taken as records per second",
        ),
        ("epoch_s,event\n5,delay\n", "times of 'epoch_s' are seconds"),
    ],
)
def test_how_a_file_was_read_is_said(text, expected):
    assert [expected] == notes(text)


def test_the_unit_of_a_file_does_not_change_on_its_way(monkeypatch):
    """Microseconds from 0 on were read as seconds in the first block, and as milliseconds after a day."""
    monkeypatch.setattr(reading, "BLOCK_ROWS", 100)
    found = read("t_s,rate\n" + "".join(f"{at * 10**9},1\n" for at in range(300)))

    assert found["rates"]["t_s"].iloc[-1] == 299 * 10**9


@pytest.mark.parametrize("date", ["14.11.2023 10:00:00", "11/14/2023 10:00", "Nov 14 2023"])
def test_dates_that_are_not_iso_8601_are_one_message(date):
    found = read("Date,value\n" + f"{date},1\n" * 20)

    expected = f"Date is not a time: expected {EXPECTED_TIMES}, not '{date}'"
    assert {expected} == set(found["quarantine"]["reason"])
    assert notes("Date,value\n" + f"{date},1\n") == []


def test_a_value_of_another_unit_is_refused_until_its_meaning_is_chosen():
    text = "time,cpu_percent\n1,50\n2,60\n"
    chosen = {"time": "time", "value": "cpu_percent"}

    (why,) = reasons(text, **chosen)
    assert why.startswith("'cpu_percent' is per cent by its name, not a rate of records: query numRecordsInPerSecond")
    assert read(text, per_s=1.0, **chosen)["rates"]["rate"].tolist() == [50, 60]
    assert notes(text, per_s=300.0, **chosen) == [
        "times of 'time' are seconds, 'cpu_percent' is taken as records in 300 s"
    ]


def test_a_rescale_is_no_failure():
    found = read("epoch_s,event,detail\n5,inject_delay,x\n9,rescale,y\n")

    assert found["failures"]["t_s"].tolist() == [5.0]
    assert found["passed"]["reason"].tolist() == ["a rescale is no failure"]


START = float("-inf")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1, 2, 3], {}),
        ([1, 9, 2, 3], {1: AHEAD}),
        ([1, 2, 3, 0, 4], {3: BACK}),
        ([1, 2, 2, 3], {2: BACK}),
        ([5, 1, 2, 3], {0: AHEAD}),
        ([1, 8, 9, 2, 3, 10], {3: BACK, 4: BACK}),
        ([], {}),
    ],
)
def test_the_row_that_is_wrong_is_named(times, expected):
    reasons = out_of_order(np.array(times, dtype=float), START, strictly=True)

    assert expected == {i: str(reason) for i, reason in enumerate(reasons) if reason}


def test_equal_times_may_be_asked_for():
    """Two requests arrive in one instant."""
    times = np.array([1.0, 1.0, 2.0])

    assert out_of_order(times, 1, strictly=False).tolist() == ["", "", ""]
    assert out_of_order(times, 1, strictly=True).tolist() == [BACK, BACK, ""]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([*range(0, 200, 10), *range(1160, 1400, 10)], ["1 gap of 970 s: the rate before it goes on"]),
        ([*range(100), *range(160, 200), *range(190, 300)], ["1 gap of 61 s: the rate before it goes on"]),
        (
            [*range(100), *range(160, 200), *range(260, 300)],
            ["2 gaps, 122 s in all: the rate before each goes on"],
        ),
        ([n * n for n in range(40)], []),  # times between rows have no usual length
    ],
    ids=["minutes", "rows out of order", "two", "uneven"],
)
def test_gaps_are_counted(monkeypatch, times, expected):
    """Across blocks as well, and not where rows are in quarantine."""
    monkeypatch.setattr(reading, "BLOCK_ROWS", 50)

    assert expected == notes("t_s,rate\n" + "".join(f"{at},1\n" for at in times))[1:]
