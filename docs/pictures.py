"""The pictures of the pages: how barriers travel, what a checkpoint waits for, how a job ends and comes back.

python -m docs.pictures  draws docs/pictures/ again
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docs.drawing import Drawing, lanes, storeys

if TYPE_CHECKING:
    from pandas import DataFrame

    from sim.model.scenario import Scenario
    from sim.results.charts import Chart

__all__ = ["FOLDER", "LAYERS", "PICTURES", "PLAYERS", "players"]

FOLDER = Path(__file__).parent / "pictures"


def barriers() -> str:
    """What a task with two inputs does when one barrier is there and the other is not."""
    drawing = Drawing(760, 484, "Three ways of barriers")
    panels = (
        (
            "aligned",
            (
                "Channel A had its barrier and is blocked.",
                "Channel B is read until its barrier comes, behind its data.",
            ),
            "xxxxxxxx",
            "ooo|cccc",
            "cc",
        ),
        (
            "unaligned",
            (
                "The first barrier goes out at once.",
                "Data that it passes, and B's data before its barrier, are stored.",
            ),
            "ooo|ssss",
            "o|ssssss",
            "|cc",
        ),
        (
            "aligned with a timeout",
            ("It begins aligned.", "After the timeout the missing barrier overtakes; what it passes is stored."),
            "xxxxxxxx",
            "ooo|ssss",
            "|cc",
        ),
    )
    for k, (title, words, upper, lower, out) in enumerate(panels):
        top = 8 + 150 * k
        drawing.text((16, top + 16), title, style="head")
        drawing.text((16, top + 36), " ".join(words), style="soft")
        drawing.box((480, top + 52), (90, 70), "a", "task")
        for name, cells, y in (("channel A", upper, top + 54), ("channel B", lower, top + 92)):
            drawing.text((16, y + 19), name)
            _cells(drawing, (110, y), cells)
            drawing.line((446, y + 14), (478, y + 14), arrow=True)
        drawing.line((570, top + 87), (740, top + 87), arrow=True)
        _cells(drawing, (600, top + 73), out)
    drawing.legend(
        (16, 462),
        {
            "b": "barrier",
            "c": "read and sent on",
            "e": "stored in the checkpoint",
            "line": "blocked, or behind the barrier",
        },
    )
    return drawing.svg()


def _cells(drawing: Drawing, place: tuple[float, float], cells: str) -> None:
    """o data behind the barrier, x blocked data, c data before the barrier, s stored data, | a barrier; read from the right."""
    for i, cell in enumerate(cells):
        x, y = place[0] + 41 * i, place[1]
        if cell == "|":
            drawing.box((x + 14, y - 2), (10, 32), "b")
        else:
            drawing.box((x, y), (37, 28), {"c": "c", "s": "e"}.get(cell, "line"), dashed=cell == "x")


def phases() -> str:
    return lanes(
        "One aligned checkpoint, and what it waits for",
        (
            ("coordinator", [(0, 8, "a", ""), (86, 98, "a", "finalise")]),
            ("source", [(8, 12, "c", ""), (12, 24, "f", "upload")]),
            (
                "map",
                [(12, 34, "e", "behind data"), (34, 46, "d", "alignment"), (46, 50, "c", ""), (50, 64, "f", "upload")],
            ),
            ("sink", [(14, 58, "e", "behind data"), (58, 64, "b", ""), (64, 68, "c", ""), (68, 84, "f", "upload")]),
        ),
        marks=((0, "trigger"), (58, "barrier at the sink"), (98, "complete")),
        arrows=((4, 0, 8, 1), (12, 1, 34, 2), (50, 2, 58, 3), (84, 3, 88, 0)),
        legend={"b": "before the barrier", "c": "synchronous part", "f": "asynchronous part"},
    )


def operator_io() -> str:
    return lanes(
        "Files of an operator: before the barrier, or behind it (FLINK-37375)",
        (
            (
                "before the barrier",
                [
                    (0, 20, "c", "records"),
                    (20, 62, "b", "write files, thread waits"),
                    (62, 66, "d", ""),
                    (66, 100, "c", "records"),
                ],
            ),
            (
                "behind the barrier",
                [(0, 20, "c", "records"), (20, 28, "e", ""), (28, 32, "d", ""), (32, 100, "c", "records")],
            ),
            ("  its other thread", [(32, 74, "f", "upload")]),
        ),
        marks=((20, "barrier comes"), (74, "acknowledged")),
        legend={"b": "waits for storage", "e": "to the local disk", "d": "synchronous part", "f": "asynchronous part"},
    )


def end_of_job() -> str:
    return lanes(
        "A bounded job ends (FLIP-147)",
        (
            ("source", [(0, 34, "c", "records"), (34, 84, "line", "finished, waits")]),
            ("sink", [(0, 40, "c", "records"), (40, 48, "b", ""), (48, 84, "line", "waits")]),
            ("coordinator", [(14, 22, "a", ""), (54, 76, "a", "last checkpoint")]),
            ("visible output", [(22, 84, "f", "up to the first checkpoint"), (84, 100, "e", "all")]),
        ),
        marks=((34, "end of data"), (84, "commit, then the job ends")),
        arrows=((22, 2, 24, 3), (76, 2, 84, 3)),
        legend={"b": "operators finish: what they hold goes out", "a": "checkpoint"},
    )


def windows() -> str:
    return lanes(
        "A barrier meets a window that fires",
        (
            (
                "timers one by one",
                [(0, 16, "c", "records"), (16, 70, "b", "fire"), (70, 76, "d", ""), (76, 100, "c", "records")],
            ),
            (
                "interruptible",
                [
                    (0, 16, "c", "records"),
                    (16, 30, "b", "fire"),
                    (30, 36, "d", ""),
                    (36, 76, "b", "fire"),
                    (76, 100, "c", "records"),
                ],
            ),
        ),
        marks=((30, "barrier comes"), (70, "its turn without")),
        legend={"b": "the window fires, record by record", "d": "barrier and snapshot"},
    )


def recovery() -> str:
    return lanes(
        "A failure, and the way back",
        (
            (
                "job",
                [
                    (0, 30, "c", "records"),
                    (30, 52, "line", "down"),
                    (52, 84, "e", "does again, and more"),
                    (84, 100, "c", "records"),
                ],
            ),
            ("checkpoints", [(4, 12, "a", ""), (20, 26, "a", ""), (58, 68, "a", ""), (88, 94, "a", "")]),
            ("steps of it", [(30, 36, "d", ""), (36, 44, "d", "delay"), (44, 52, "f", "restore")]),
        ),
        marks=((30, "failure"), (84, "caught up")),
        legend={"a": "checkpoint", "d": "noticed, cancelled, restart delay", "f": "state is read", "e": "backlog"},
    )


def model() -> str:
    """Who decides, who moves bytes, and who says what time it is."""
    drawing = Drawing(760, 290, "Two planes and one clock")
    drawing.box((16, 16), (340, 92), "a")
    drawing.text((32, 40), "control plane", style="head")
    drawing.text((32, 62), "coordinator, tasks' snapshots, recovery, end:")
    drawing.text((32, 82), "event in, next state and commands out")
    drawing.box((404, 16), (340, 92), "c")
    drawing.text((420, 40), "data plane", style="head")
    drawing.text((420, 62), "threads, records, buffers, credits, markers:")
    drawing.text((420, 82), "twice, as text to read and as compiled code")
    drawing.box((16, 160), (728, 114), "e")
    drawing.text((32, 184), "runtime, on one clock", style="head")
    drawing.text((32, 206), "Carries out commands, and lets them take time: state, storage, network, faults.")
    drawing.text((32, 228), "Returns the outcome as events.")
    drawing.text((32, 250), "Writes a journal. Tables and checks are made of it.")
    drawing.line((130, 108), (130, 158), arrow=True)
    drawing.text((138, 138), "commands", style="soft")
    drawing.line((260, 160), (260, 110), arrow=True)
    drawing.text((268, 138), "events", style="soft")
    drawing.line((520, 160), (520, 110), arrow=True)
    drawing.text((528, 138), "markers", style="soft")
    drawing.line((630, 108), (630, 158), arrow=True)
    drawing.text((638, 138), "notices", style="soft")
    return drawing.svg()


def first_durations() -> str:
    """The example `first`: durations by phase, a panel per strategy."""
    from sim.app.report.figures import phases

    drawn = phases(_tables("first"))
    if drawn is None:
        raise ValueError("the example 'first' completed no checkpoint")
    return _alone(drawn, "first-durations")


def failures_lag() -> str:
    """The example `failures`: how far the sources are behind, by interval."""
    from sim.app.report.figures import lines

    curves = {name: tables["series"].groupby("time")["lag"].max() for name, tables in _tables("failures").items()}
    return _alone(lines(curves, "seconds behind", failures=[100.0]), "failures-lag")


PLAYERS = {
    "aligned": ["aligned"],
    "unaligned": ["unaligned"],
    "beside": ["aligned", "unaligned", "aligned-timeout 1 s"],
}
"""Players of docs/player.md -> the strategies of the example `first` that they show."""


def players() -> dict[str, str]:
    """Return checkpoint 2 of the example `first` as animations, which `docs/site.py` puts into their page."""
    from sim.explain.close_up import rerun_with_observers
    from sim.explain.player import choose_checkpoints, describe
    from sim.results.page import player_html

    runs = {label: rerun_with_observers(scenario) for label, scenario in _scenarios("first").items()}
    return {
        name: player_html(describe(choose_checkpoints({label: runs[label] for label in shown}, 2)))
        for name, shown in PLAYERS.items()
    }


def _tables(example: str) -> dict[str, dict[str, DataFrame]]:
    """By strategy: the tables of its run."""
    from sim.runtime.simulate import simulate

    return {label: simulate(scenario).tables for label, scenario in _scenarios(example).items()}


def _scenarios(example: str) -> dict[str, Scenario]:
    """By strategy: the scenario of an example."""
    from sim.app.examples import contents
    from sim.model.schema.study import loads
    from sim.studies.plan import label

    return {label(scenario): scenario for scenario in loads(contents(example)[f"{example}.yaml"], example).scenarios}


def _alone(drawn: Chart, name: str) -> str:
    """A figure of reports as a file of its own: it brings the colours that the page of a report has."""
    from sim.results.charts import svg, to_figure
    from sim.results.page import colours

    text = svg(to_figure(drawn), name)
    return (
        text.replace(
            ">",
            f"><style>{colours()} text{{font-family:system-ui,sans-serif}}</style><rect width='100%' height='100%' fill='var(--paper)'/>",
            1,
        )
        + "\n"
    )


LAYERS = (
    (("app",), "commands, Python, reports"),
    (("advice",), "settings that keep limits"),
    (("studies",), "many runs"),
    (("jobs",), "real Flink jobs"),
    (("explain",), "why a checkpoint took so long"),
    (("runtime",), "one simulated job"),
    (("results",), "what a run produces"),
    (("protocol", "plane", "storage"), "decisions, data, files"),
    (("model",), "nouns, units, scenario files"),
)
"""(packages, what they are about) from top to bottom; a package imports from lower layers only."""


def packages() -> str:
    """The packages of the simulator, layer by layer."""
    return storeys(
        "Packages", [(names[0].capitalize() if len(names) == 1 else "Flink", what, names) for names, what in LAYERS]
    )


def regional() -> str:
    """Completed checkpoints of `scenarios/flip-600/slow-node.yaml` by fault, without and with regions."""
    from benchmarks.regional import failure_rows

    rows = failure_rows()
    drawing = Drawing(760, 56 + 56 * len(rows), "Completed checkpoints of 28, by fault")
    for k, (fault, counts) in enumerate(rows.items()):
        top = 10 + 56 * k
        drawing.text((16, top + 25), fault)
        for i, count in enumerate(counts):
            drawing.box((240, top + 20 * i), (16 * count, 16), "ac"[i])
            drawing.text((250 + 16 * count, top + 13 + 20 * i), str(count), style="soft")
    drawing.legend((16, 32 + 56 * len(rows)), {"a": "all regions or none", "c": "regional"})
    return drawing.svg()


PICTURES = {
    "barriers": barriers,
    "end-of-job": end_of_job,
    "failures-lag": failures_lag,
    "first-durations": first_durations,
    "model": model,
    "operator-io": operator_io,
    "packages": packages,
    "phases": phases,
    "recovery": recovery,
    "regional": regional,
    "windows": windows,
}
"""Name of the file -> who draws it."""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw())
