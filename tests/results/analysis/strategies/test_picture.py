"""The picture of a comparison."""

import io

import pytest

from sim.results.pictures import plot_phase_breakdown, plot_strategies_over_time, save
from sim.results.side_by_side import StrategyRow
from sim.results.summary import summarize


def panels(figure):
    """The panels, row by row."""
    return [figure.axes[i : i + 3] for i in range(0, len(figure.axes), 3)]


def test_a_row_of_three_panels_per_strategy(saturated, made):
    """Durations, queues, back-pressure; a failed checkpoint is a cross, a run without checkpoints has its queues."""
    failing = made().checkpoint(0, 4000, status="FAILED", failure="late").load(busy=(0, 0, 1))
    figure = plot_strategies_over_time(
        {"aligned": saturated(5700, 3100).tables(), "failing": failing.tables()}, "Why?", warmup_s=1.0
    )

    image = io.BytesIO()
    figure.savefig(image, format="png")

    assert image.getvalue().startswith(b"\x89PNG")
    first, second = panels(figure)
    assert [axes.get_ylabel() for axes in first] == ["checkpoint [s]", "in queues [MB]", "back-pressure [%]"]
    assert [row[0].get_title(loc="left") for row in (first, second)] == ["aligned", "failing"]
    assert [
        float(line.get_ydata()[0]) for line in second[0].lines if line.get_marker() == "x" and len(line.get_ydata())
    ] == [4.0]
    assert figure.get_suptitle() == "Why?\n× failed, grey: warm-up"


def test_back_pressure_is_that_of_the_vertex_that_is_named(saturated):
    """The one that waits for its readers longest."""
    tables = saturated(5700, 3100).tables()
    most = tables["series"].groupby("vertex")["backPressured"].mean().idxmax()
    last = panels(plot_strategies_over_time({"aligned": tables}, "Why?"))[0][2]

    assert f"of {most}" == last.get_title(loc="left")
    curve = tables["series"][tables["series"]["vertex"] == most].groupby("time")["backPressured"].max()
    assert list(100 * curve) == list(last.lines[0].get_ydata())


def test_strategies_with_the_same_run_share_a_row(saturated):
    """Two pictures of the same curve hide that it is the same."""
    same = {name: saturated(5700, 3100).tables() for name in ("aligned", "debloating")}
    figure = plot_strategies_over_time(same | {"other": saturated(900, 3100).tables()}, "Why?")

    assert [row[0].get_title(loc="left") for row in panels(figure)] == ["aligned = debloating (identical)", "other"]


@pytest.mark.parametrize(("longest", "is_log"), [(5900, False), (90_000, True), (5_000_000, True)])
def test_no_two_ticks_of_durations_have_the_same_label(saturated, longest, is_log):
    figure = plot_strategies_over_time(
        {"short": saturated(5700, 3100).tables(), "long": saturated(longest, 3100).tables()}, "Why?"
    )
    figure.savefig(io.BytesIO(), format="png")
    axes = panels(figure)[0][0]
    labels = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks() if tick.label1.get_text()]

    assert len(labels) == len(set(labels)) > 1
    assert ("log" if is_log else "linear") == axes.get_yscale()
    assert not [tick.label1.get_text() for tick in axes.yaxis.get_minor_ticks() if tick.label1.get_text()]


def test_a_picture_is_drawn_once_and_is_what_savefig_gives(saturated, tmp_path):
    """Both as matplotlib would lay it out: with room for the legend beside the panels."""
    image, file = io.BytesIO(), tmp_path / "picture.png"
    runs = {"aligned, of a long name": saturated(5700, 3100).tables()}

    plot_strategies_over_time(runs, "Why?").savefig(image, format="png")
    save(plot_strategies_over_time(runs, "Why?"), file)

    assert image.getvalue() == file.read_bytes()


def test_bars_add_up_to_the_checkpoint(saturated, made, edges):
    """A strategy whose checkpoints never complete has no bar."""
    runs = {"aligned": saturated(5700, 3100), "never": made().checkpoint(status="FAILED").load(busy=(0, 0, 1))}
    strategies = [StrategyRow(name, (), "", "RUNNING", summarize([run.tables()], edges)) for name, run in runs.items()]

    axes = plot_phase_breakdown(strategies).axes[0]

    assert [axes.spines[side].get_visible() for side in ("top", "right")] == [False, False]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["aligned"]
    assert round(sum(bar.get_width() for bar in axes.patches), 6) == 3.118
