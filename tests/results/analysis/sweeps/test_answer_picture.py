"""The picture of a sweep's answer."""

import io

import pandas as pd
import pytest
from matplotlib.figure import Figure

from sim.results.pictures import plot_sweep_answer, set_ticks
from sim.results.sweep_answers import Limit


def results(intervals=("10 s", "1 min", "30 s"), barriers=("aligned", "unaligned")):
    rows = [
        {
            "cell": "x",
            "scenario": "s",
            "replication": k,
            "seed": k,
            "interval": interval,
            "barriers": way,
            "strategy": way,
            "status": "ok",
            "end_to_end_p50_ms": 1000.0 * (i + 1) * (j + 1) + k,
            "persisted_bytes": 1e6 * j,
        }
        for k in range(3)
        for i, interval in enumerate(intervals)
        for j, way in enumerate(barriers)
    ]
    return pd.DataFrame(rows)


def lines(axes):
    """(x, y) of each setting's line, bars of confidence left out."""
    return [(list(bars[0].get_xdata()), list(bars[0].get_ydata())) for bars in axes.containers]


def test_quantities_lie_on_the_axis_in_their_order():
    """10 s, 30 s, 1 min, however they were written down; one line per value of the other setting, one panel per column."""
    figure = plot_sweep_answer(
        {"": results()}, ["barriers", "interval"], ["end_to_end_p50_ms", "persisted_bytes"], title="Which?"
    )
    durations = figure.axes[0]

    assert [y for _, y in lines(durations)] == [[1001, 3001, 2001], [2001, 6001, 4001]]
    assert all(list(x) == sorted(x) for x, _ in lines(durations))
    assert {"10 s", "30 s", "1 min"} == {tick.get_text() for tick in figure.axes[-1].get_xticklabels()}
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "checkpoint duration, median",
        "in-flight data per\ncheckpoint",
    ]
    assert [figure.axes[-1].get_xlabel(), figure.axes[-1].get_xscale()] == ["interval", "log"]
    assert [text.get_text() for text in durations.get_legend().get_texts()] == ["aligned", "unaligned"]


def test_limits_are_lines_in_their_panel():
    columns = ["end_to_end_p50_ms", "persisted_bytes"]
    figure = plot_sweep_answer(
        {"": results()}, ["interval", "barriers"], columns, [Limit("persisted_bytes", at_most=5e5)]
    )
    dashed = [[line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"] for axes in figure.axes]

    assert dashed == [[], [5e5]]


@pytest.mark.parametrize(
    ("column", "low", "high", "ticks"),
    [
        ("end_to_end_p50_ms", 990.0, 1090.0, ["1000 ms", "1020 ms", "1040 ms", "1060 ms", "1080 ms"]),
        ("caught_up_ms", 90_000.0, 270_000.0, ["1.5 min", "2 min", "2.5 min", "3 min", "3.5 min", "4 min", "4.5 min"]),
        ("lag_s", 35.0, 115.0, ["40 s", "60 s", "80 s", "100 s"]),
        ("persisted_bytes", 0.0, 9.4e6, ["0 MB", "2 MB", "4 MB", "6 MB", "8 MB"]),
        ("throughput_per_second", 12_000.0, 20_000.0, ["12k/s", "14k/s", "16k/s", "18k/s", "20k/s"]),
        ("throughput_change", -0.09, 0.01, ["-8 %", "-6 %", "-4 %", "-2 %", "0 %"]),
        ("completed", 9.0, 118.0, ["20", "40", "60", "80", "100"]),
    ],
)
def test_ticks_are_round_numbers_of_one_unit(column, low, high, ticks):
    """Rounded values read '1 s, 1 s, 1 s, 1.1 s', and steps of 50,000 ms '100 s, 2.5 min, 3.3 min'."""
    axes = Figure().subplots()
    axes.set_ylim(low, high)
    set_ticks(axes.yaxis, column)

    assert ticks == [tick.get_text() for tick in axes.get_yticklabels()]
    assert (low, high) == axes.get_ylim()


@pytest.mark.parametrize("values", [("aligned", "unaligned"), ("10 s", "1 MB"), ("unlimited", "5/s")])
def test_words_stand_side_by_side(values):
    """Values that are no quantities of one kind have no distance from each other, and no line between them."""
    figure = plot_sweep_answer({"": results(values, ("aligned",))}, ["interval"], ["end_to_end_p50_ms"])
    ((x, y),) = lines(figure.axes[0])

    assert (x, y) == ([0, 1], [1001, 2001])
    assert figure.axes[0].get_legend() is None


def test_it_can_be_drawn_without_a_spread():
    """One world has no interval of confidence."""
    image = io.BytesIO()
    plot_sweep_answer(
        {"": results().query("replication == 0")}, ["interval", "barriers"], ["end_to_end_p50_ms"]
    ).savefig(image, format="png")

    assert image.getvalue().startswith(b"\x89PNG")


def test_groups_stand_side_by_side():
    """The same axes, so that they can be compared; the settings of one may be missing in the other."""
    groups = {"load low": results(), "load high": results(("10 s", "2 min"))}
    figure = plot_sweep_answer(groups, ["interval", "barriers"], ["end_to_end_p50_ms", "persisted_bytes"])
    low, high = figure.axes[:2]

    assert [low.get_title(), high.get_title()] == ["load low", "load high"]
    assert (len(lines(low)[0][1]), len(lines(high)[0][1])) == (3, 2)
    assert (low.get_ylim(), low.get_xlim()) == (high.get_ylim(), high.get_xlim())


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]
"""Okabe and Ito's."""


def test_a_panel_is_as_large_as_all_others():
    """4.5 inches wide beside 4.5 for the legend, 2.6 high and 1.2 for what stands around it."""
    columns = ["end_to_end_p50_ms", "persisted_bytes"]
    alone, four = (
        plot_sweep_answer(groups, ["interval", "barriers"], names)
        for groups, names in (
            ({"": results()}, columns[:1]),
            ({"a": results(), "b": results()}, columns),
        )
    )

    assert [tuple(map(float, figure.get_size_inches().round(6))) for figure in (alone, four)] == [
        (9.0, 3.8),
        (13.5, 6.4),
    ]
    assert (alone.get_dpi(), len(alone.axes), len(four.axes)) == (120, 1, 4)
    assert [axes.get_title() for axes in four.axes] == ["a", "b", "", ""]
    assert [axes.get_ylabel() for axes in four.axes] == [
        "checkpoint duration, median",
        "",
        "in-flight data per\ncheckpoint",
        "",
    ]
    assert [axes.get_legend() and True for axes in four.axes] == [None, True, None, None]


def test_lines_have_colours_and_marks_of_their_own():
    """Lines of nine combinations: from the ninth on colours come again, with another mark."""
    figure = plot_sweep_answer(
        {"": results(("10 s", "20 s"), [f"way {i}" for i in range(9)])}, ["interval", "barriers"], ["end_to_end_p50_ms"]
    )
    drawn = [bars[0] for bars in figure.axes[0].containers]

    assert [*COLOURS, COLOURS[0]] == [line.get_color() for line in drawn]
    assert [*"os^Dv<>P", "s"] == [line.get_marker() for line in drawn]
    assert {(5, 1.2, "-")} == {(line.get_markersize(), line.get_linewidth(), line.get_linestyle()) for line in drawn}
    assert figure.axes[0].get_legend().get_title().get_text() == "barriers"


def test_lines_are_shifted_so_that_bars_do_not_hide_each_other():
    """By two per cent of the axis: on a logarithmic one, which begins at a factor above five, by a power of its length."""
    linear, log = (
        [
            x
            for x, _ in lines(
                plot_sweep_answer({"": results(values)}, ["interval", "barriers"], ["end_to_end_p50_ms"]).axes[0]
            )
        ]
        for values in (("10 s", "50 s"), ("10 s", "51 s"))
    )

    assert [pytest.approx(x) for x in linear] == [
        [1e10 - 0.01 * 4e10, 5e10 - 0.01 * 4e10],
        [1e10 + 0.01 * 4e10, 5e10 + 0.01 * 4e10],
    ]
    assert [pytest.approx(x) for x in log] == [
        [1e10 * 5.1**-0.01, 5.1e10 * 5.1**-0.01],
        [1e10 * 5.1**0.01, 5.1e10 * 5.1**0.01],
    ]


def test_bars_are_intervals_and_arrows_mean_more_than_this():
    """1000, 1001 and 1002 are off by 2.48; one that had not ended has an arrow of 14 points upwards."""
    rows = results(("10 s", "20 s"), ("aligned",))
    rows["unfinished"] = ["end_to_end_p50_ms" if interval == "20 s" else "" for interval in rows["interval"]]
    axes = plot_sweep_answer(
        {"": rows}, ["interval"], ["end_to_end_p50_ms"], [Limit("end_to_end_p50_ms", at_least=1500)]
    ).axes[0]
    ((_, _, (bars,)),) = axes.containers
    (first, second) = (segment[:, 1] for segment in bars.get_segments())

    assert pytest.approx(first, abs=1e-3) == [1001 - 2.484, 1001 + 2.484]
    assert first[1] - first[0] == pytest.approx(second[1] - second[0]) or second[0] == second[1]
    (arrow,) = axes.texts
    assert (pytest.approx(arrow.xy), arrow.get_position()) == ((2e10, 2001 + 0), (0, 14))
    assert [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [1500]
    assert {(1, "#555555")} == {
        (line.get_linewidth(), line.get_color()) for line in axes.lines if line.get_linestyle() == "--"
    }


@pytest.mark.parametrize(("length", "rotation", "side"), [(45, 0, "center"), (46, 30, "right")])
def test_long_names_of_values_are_turned(length, rotation, side):
    """From more than ninety letters on."""
    figure = plot_sweep_answer(
        {"": results(("a" * length, "b" * 45), ("aligned",))}, ["interval"], ["end_to_end_p50_ms"]
    )

    assert {(rotation, side)} == {
        (tick.get_rotation(), tick.get_horizontalalignment()) for tick in figure.axes[0].get_xticklabels()
    }


def test_the_setting_with_most_quantities_is_the_axis():
    """Values of two kinds, or a single one, are none."""
    rows = results(("10 s", "20 s"), ("1 MB", "2 MB", "5 MB"))
    figure = plot_sweep_answer({"": rows}, ["interval", "barriers"], ["end_to_end_p50_ms"])

    assert (figure.axes[0].get_xlabel(), len(lines(figure.axes[0])), figure.axes[0].get_xscale()) == (
        "barriers",
        2,
        "linear",
    )
    alone = plot_sweep_answer(
        {"": results(("10 s", "20 s"), ("1 MB",))}, ["barriers", "interval"], ["end_to_end_p50_ms"]
    )
    assert alone.axes[0].get_xlabel() == "interval"
    assert [figure.axes[0].spines[side].get_visible() for side in ("top", "right")] == [False, False]
    assert {0.3} == {line.get_alpha() for line in figure.axes[0].get_xgridlines()}


def test_ticks_are_at_most_six_unless_others_are_asked_for():
    axes = Figure().subplots()
    axes.set_ylim(0, 100)
    counted = []
    for most in (6, 3):
        set_ticks(axes.yaxis, "completed", most)
        counted.append([tick.get_text() for tick in axes.get_yticklabels()])

    assert counted == [["0", "20", "40", "60", "80", "100"], ["0", "50", "100"]]
