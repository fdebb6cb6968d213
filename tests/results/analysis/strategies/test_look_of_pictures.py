"""How pictures look: sizes, colours, marks and scales, each number of them."""

import pytest

from sim.results.pictures import COLOURS, group_identical_curves, plot_phase_breakdown, plot_strategies_over_time
from sim.results.side_by_side import StrategyRow
from sim.results.summary import summarize

BLUE, ORANGE, GREEN = COLOURS[:3]


@pytest.fixture
def first_row(made):
    """The panels of a strategy whose first checkpoint uploads everything, with one that failed; grey until 1.5 s."""
    run = made().checkpoint(0, 9000, size=4e9, state=4e9)
    for k in range(1, 9):
        run.checkpoint(1000 * k, 500 + k, size=1e6, state=4e9)
    run.checkpoint(9000, 4000, status="FAILED", failure="late")
    run.load(busy=(0.1, 0.5, 0.9), waiting=(0.4, 0.2, 0.0), seconds=3)
    figure = plot_strategies_over_time({"aligned": run.tables()}, "Why $5?", warmup_s=1.5)
    return figure, figure.axes[:3]


def marks(axes):
    return [(line.get_marker(), line.get_color(), line.get_markersize(), len(line.get_xdata())) for line in axes.lines]


def test_a_checkpoint_is_a_dot_at_its_trigger_in_seconds(first_row):
    """A first upload is a diamond, a failed one a cross; both larger than a dot."""
    _, (durations, _, _) = first_row

    assert marks(durations) == [("o", BLUE, 3.5, 8), ("D", GREEN, 6, 1), ("x", ORANGE, 6, 1)]
    assert (list(range(1, 9)), [0.501, 0.508]) == (
        list(durations.lines[0].get_xdata()),
        list(durations.lines[0].get_ydata())[::7],
    )
    assert tuple(map(list, durations.lines[1].get_data())) == ([0.0], [9.0])
    assert tuple(map(list, durations.lines[2].get_data())) == ([9.0], [4.0])


def test_queues_are_megabytes_of_all_vertices_and_waiting_is_per_cent(first_row):
    """1 MB in front of and behind each of three vertices are 6 MB."""
    _, (_, queues, waiting) = first_row

    assert [tuple(map(list, axes.lines[0].get_data())) for axes in (queues, waiting)] == [
        ([1.0, 2.0, 3.0], [6.0] * 3),
        ([1.0, 2.0, 3.0], [40.0] * 3),
    ]
    assert {(BLUE, 1.1, "-")} == {
        (line.get_color(), line.get_linewidth(), line.get_linestyle()) for line in (queues.lines[0], waiting.lines[0])
    }
    assert waiting.get_title(loc="left") == "of source"


def test_numbers_at_the_axes_are_as_small_as_the_titles(first_row):
    """Three panels stand side by side."""
    _, panels = first_row

    sizes = {
        tick.label1.get_size()
        for axes in panels
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
    }
    assert {panels[0].xaxis.label.get_size()} == sizes


def test_the_warm_up_is_grey_in_all_panels(first_row):
    """A light grey from 0 s on, without an edge."""
    _, panels = first_row

    for axes in panels:
        (grey,) = axes.patches
        assert (grey.get_x(), grey.get_width(), grey.get_alpha(), grey.get_linewidth()) == (0, 1.5, 0.08, 0)
        assert grey.get_facecolor()[:3] == (0.0, 0.0, 0.0)


def test_the_title_says_what_marks_mean(first_row):
    """It stands on the left; a dollar is no formula."""
    figure, panels = first_row

    assert figure.get_suptitle() == "Why \\$5?\n× failed, ◇ first upload, grey: warm-up"
    assert (figure._suptitle.get_position()[0], figure._suptitle.get_horizontalalignment()) == (0.01, "left")
    assert [axes.get_xlabel() for axes in panels] == ["simulated time [s]"] * 3
    assert {False} == {axes.spines[side].get_visible() for axes in panels for side in ("top", "right")}
    assert {True} == {axes.spines[side].get_visible() for axes in panels for side in ("left", "bottom")}
    assert {(True, 0.3)} == {
        (line.get_visible(), line.get_alpha()) for axes in panels for line in axes.get_xgridlines()
    }


def test_scales_hold_all_of_the_data(first_row):
    """Durations from half a second to nine differ by a factor of 18: logarithmic, with room on both sides."""
    _, (durations, queues, waiting) = first_row

    assert pytest.approx(durations.get_ylim()) == (0.501 / 1.6, 9.0 * 1.6)
    assert durations.get_yscale() == "log"
    assert queues.get_ylim()[0] == 0
    assert waiting.get_ylim() == (-4, 104)


@pytest.mark.parametrize(("longest", "is_log", "most"), [(1190, False, 1.15 * 1.19), (1210, True, 1.6 * 1.21)])
def test_durations_are_on_a_logarithmic_axis_from_a_factor_of_twelve_on(made, longest, is_log, most):
    run = made().checkpoint(0, 100).checkpoint(1000, longest).load(busy=(0, 0, 0))
    axes = plot_strategies_over_time({"aligned": run.tables()}, "Why?").axes[0]

    assert ("log" if is_log else "linear") == axes.get_yscale()
    assert most == pytest.approx(axes.get_ylim()[1])
    assert (0.1 / 1.6 if is_log else 0) == pytest.approx(axes.get_ylim()[0])


def test_without_checkpoints_there_is_a_scale_and_no_remark(made):
    """A run that warms up for no time has no grey."""
    figure = plot_strategies_over_time(
        {"off": made().checkpoint(0, -1, status="IN_PROGRESS").load(busy=(0, 0, 0)).tables()}, "Why?"
    )

    assert figure.get_suptitle() == "Why?"
    assert figure.axes[0].get_ylim() == (0, 1.15)
    assert list(figure.axes[0].patches) == []


def test_each_strategy_makes_a_picture_higher(saturated):
    """1.35 inches a row and 1.1 for what stands around them, 11 wide."""
    runs = {str(ms): saturated(ms, 10).tables() for ms in (100, 200, 300)}
    sizes = [
        tuple(plot_strategies_over_time(dict(list(runs.items())[:count]), "").get_size_inches()) for count in (1, 3)
    ]

    assert [(11, pytest.approx(2.45)), (11, pytest.approx(5.15))] == sizes
    assert plot_strategies_over_time(runs, "").get_dpi() == 120


def test_runs_are_alike_if_their_curves_are(made):
    """Also in their checkpoints alone: durations and failures are part of the curve."""
    plain = made().checkpoint(0, 100).load(busy=(0, 0, 0)).tables()
    slower = made().checkpoint(0, 101).load(busy=(0, 0, 0)).tables()
    failed = made().checkpoint(0, 100, status="FAILED").load(busy=(0, 0, 0)).tables()
    titles = [
        axes.get_title(loc="left")
        for axes in plot_strategies_over_time({"a": plain, "b": slower, "c": failed, "d": plain}, "").axes[::3]
    ]

    assert titles == ["a = d (identical)", "b", "c"]
    series = plain["series"]["time"]
    assert group_identical_curves({"a": series, "b": series + 1, "c": series}) == {"a": ["a", "c"], "b": ["b"]}


def test_bars_lie_beside_each_other_in_their_order(saturated, made, edges):
    """Behind data 3.11 s, then messages 8 ms; half an inch for each bar, names at the left, the first strategy on top."""
    runs = {
        "aligned": saturated(5700, 3100),
        "unaligned": made().checkpoint(0, 70).part("sync", "sink", 60).load(busy=(0, 0, 0)),
    }
    lines = [StrategyRow(name, (), "", "RUNNING", summarize([run.tables()], edges)) for name, run in runs.items()]
    figure = plot_phase_breakdown(lines, "Where?")
    (axes,) = figure.axes

    assert (9, pytest.approx(2.2), 120) == (*figure.get_size_inches(), figure.get_dpi())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["unaligned", "aligned"]
    bars = {
        part.get_label(): [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in part] for part in axes.containers
    }
    assert {name: [pytest.approx(bar) for bar in own] for name, own in bars.items()} == {
        "waiting behind data": [(0, 0, 0.6), (0, 3.11, 0.6)],
        "until the timeout": [(0, 0, 0.6), (3.11, 0, 0.6)],
        "alignment": [(0, 0, 0.6), (3.11, 0, 0.6)],
        "before the barrier": [(0, 0, 0.6), (3.11, 0, 0.6)],
        "synchronous": [(0, 0.06, 0.6), (3.11, 0, 0.6)],
        "asynchronous": [(0.06, 0, 0.6), (3.11, 0, 0.6)],
        "messages": [(0.06, 0, 0.6), (3.11, 0.008, 0.6)],
    }
    assert (axes.get_xlabel(), axes.get_title(loc="left")) == ("median checkpoint [s]", "Where?")
    assert list(COLOURS[:7]) == [_hex(part[0].get_facecolor()) for part in axes.containers]


def _hex(colour):
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour[:3])
