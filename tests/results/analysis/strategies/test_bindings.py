"""Each number of the verdict that a column has is that of the row which its sentence names; four planted errors are noticed."""

from dataclasses import replace

import pytest

from sim.app.report.results_page import _verdict_cells
from sim.results import bindings as registry
from sim.results.bindings import bindings, bound_cells
from sim.results.page import Block, Page, html
from sim.results.side_by_side import texts
from sim.results.verdict import verdict
from tests.results.analysis.runs_by_hand import line, saturated


@pytest.fixture
def strategies():
    """Two barriers on two stores; checkpoints of the second store are slower."""
    durations = {"fast": {"aligned": 5700, "unaligned": 70}, "slow": {"aligned": 9100, "unaligned": 1200}}
    return [
        line(f"{name}, {store}", saturated(ms, ms // 2, persisted=8000 * (name == "unaligned")), name=name, group=store)
        for store, rows in durations.items()
        for name, ms in rows.items()
    ]


def unbound(text, strategies):
    return [text[own.begin : own.end] for own in bindings(text, strategies) if own.row < 0]


def test_numbers_are_in_the_rows_that_their_words_name(strategies):
    text = verdict(strategies)
    cells = {(own["text"], own["row"], own["column"]) for own in bound_cells(text, strategies)}

    assert text.startswith("With fast: ")
    assert {("70 ms", "unaligned, fast", "p50"), ("5.7 s", "aligned, fast", "p50")} <= cells
    assert {
        ("1.2 s", "unaligned, slow", "p50"),
        ("9.1 s", "aligned, slow", "p50"),
        ("9.1 s", "aligned, slow", "max"),
    } <= cells
    assert unbound(text, strategies) == []


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ("take 70 ms", "take 71 ms", "71 ms"),  # a number that no row has
        (
            "With slow checkpoints take 1.2 s",
            "With slow checkpoints take 70 ms",
            "70 ms",
        ),  # that of another row, as in W1
        ("instead of 5.7 s", "instead of 9.1 s", "9.1 s"),  # that of another workload
    ],
)
def test_a_wrong_number_or_row_is_noticed(strategies, before, after, wrong):
    text = verdict(strategies)

    assert before in text
    assert wrong in unbound(text.replace(before, after), strategies)


def test_a_wrong_column_is_noticed(strategies, monkeypatch):
    slots = tuple(
        (pattern, tuple({"p50": "start delay"}.get(name, name) for name in names)) for pattern, names in registry.SLOTS
    )
    monkeypatch.setattr(registry, "SLOTS", slots)

    assert "70 ms" in unbound(verdict(strategies), strategies)


def test_a_table_with_exchanged_rows_is_noticed(strategies):
    first, second, *rest = strategies
    exchanged = [replace(first, summary=second.summary), replace(second, summary=first.summary), *rest]

    assert {"70 ms", "5.7 s"} <= set(unbound(verdict(strategies), exchanged))


def test_a_report_links_each_number_to_its_cell(strategies):
    text, (header, rows) = verdict(strategies), texts(strategies)
    table = [[name, *(row[i] for row in rows)] for i, name in enumerate(header) if i]
    block = Block(
        "The strategies side by side", table=type("T", (), {"header": ["", *(row[0] for row in rows)], "rows": table})()
    )
    comparison = type("C", (), {"verdict": text, "strategies": strategies})()
    page = html(Page("t", "", text, [block], cells=_verdict_cells(comparison, [block])))
    for own in bound_cells(text, strategies):
        place = f"c0-{header.index(own['column']) - 1}-{[row[0] for row in rows].index(own['row']) + 1}"

        assert f'<a href="#{place}">{own["text"]}</a>' in page
        assert f'<td id="{place}"' in page
