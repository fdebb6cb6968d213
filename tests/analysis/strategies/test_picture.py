"""The picture of a comparison."""

import io

from sim.analysis.strategies.picture import save, through_time, where_time_goes
from sim.analysis.strategies.side_by_side import StrategyRow
from sim.analysis.strategies.summary import summarize


def test_three_panels_through_time(saturated, made):
    """Durations, queues, back-pressure; a failed checkpoint is a cross, a run without checkpoints has its queues."""
    failing = made().checkpoint(0, 4000, status="FAILED", failure="late").load(busy=(0, 0, 1))
    figure = through_time({"aligned": saturated(5700, 3100).tables(), "failing": failing.tables()}, "Why?", warmup_s=1.0)

    image = io.BytesIO()
    figure.savefig(image, format="png")

    assert image.getvalue().startswith(b"\x89PNG")
    assert ["checkpoint [s]", "queued data [MB]", "back-pressure [%]"] == [axes.get_ylabel() for axes in figure.axes]
    assert [4.0] == [float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "x" and len(line.get_ydata())]


def test_a_picture_is_drawn_once_and_is_what_savefig_gives(saturated, tmp_path):
    """Both as matplotlib would lay it out: with room for the legend beside the panels."""
    image, file = io.BytesIO(), tmp_path / "picture.png"
    runs = {"aligned, of a long name": saturated(5700, 3100).tables()}

    through_time(runs, "Why?").savefig(image, format="png")
    save(through_time(runs, "Why?"), file)

    assert image.getvalue() == file.read_bytes()


def test_bars_add_up_to_the_checkpoint(saturated, made, edges):
    """A strategy whose checkpoints never complete has no bar."""
    runs = {"aligned": saturated(5700, 3100), "never": made().checkpoint(status="FAILED").load(busy=(0, 0, 1))}
    strategies = [StrategyRow(name, (), "", "RUNNING", summarize([run.tables()], edges)) for name, run in runs.items()]

    axes = where_time_goes(strategies).axes[0]

    assert ["aligned"] == [text.get_text() for text in axes.get_yticklabels()]
    assert 3.118 == round(sum(bar.get_width() for bar in axes.patches), 6)
