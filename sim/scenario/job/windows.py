"""`window:` of a vertex -> the model's window, with the mistakes that its kinds allow."""

from __future__ import annotations

from dataclasses import replace

from sim.model.job import Window
from sim.scenario.grammar.options import built
from sim.scenario.job import document as doc
from sim.scenario.text.problems import DocumentPath, Reading
from sim.units import format_duration

SHORTEST_NS = 1_000_000
LOOKS = 32  # at sessions of processing time, per gap: so fine is the time at which they end
KINDS = ("tumbling", "sliding", "session", "mini_batch")


def build_window(given: doc.Vertex, name: str, reading: Reading) -> Window | None:
    """Build the window of a vertex.  None: it has none."""
    if given.window is None:
        return None
    here: DocumentPath = ("job", name, "window")
    if given.source is not None and given.window.mini_batch is None and given.window.stage != "local":
        reading.wrong(here, "a source keeps no keyed state: only stage: local and mini-batch stand in its chain")
    if given.async_io is not None:
        reading.wrong(here, "windows and requests are two vertices: write async-io in another one")
    if given.commit not in (None, "none"):
        reading.wrong(here, "windows and transactions are two vertices: write commit in the next one")
    window = given.window
    (kind,) = (kind for kind in KINDS if getattr(window, kind) is not None)
    size_ns: int = getattr(window, kind)
    _judge(window, kind, size_ns, here, reading)
    made = built(Window, window, here, reading, size_ns=max(1, size_ns))
    if kind == "session":  # every watermark ends the sessions whose gap it passes; their records have waited so long on average
        step_ns = 1 if window.time == "event" else max(SHORTEST_NS, size_ns // LOOKS)
        made = replace(made, every_ns=step_ns, hold_ns=size_ns + (window.lasts or 0) // 2)
    return replace(made, early=kind == "mini_batch" or window.stage == "local")


def _judge(window: doc.Window, kind: str, size_ns: int, here: DocumentPath, reading: Reading) -> None:
    """Keys that contradict each other."""
    if size_ns < SHORTEST_NS:
        reading.wrong((*here, _key(kind)), f"is {format_duration(size_ns)}: Flink's windows have whole milliseconds, 1 ms or more")
    if kind == "sliding":
        _judge_slide(window.every, size_ns, (*here, "every"), reading)
    step_ns = window.every or size_ns
    if window.phase is not None and window.phase >= step_ns:
        step = format_duration(step_ns)
        reading.wrong((*here, "phase"), f"is {format_duration(window.phase)}, but a window of {step} ends within {step}")
    if window.size == 0:
        reading.wrong((*here, "size"), "is 0: a bundle has 1 record or more; leave it out if there is no bound")
    if window.size is not None and window.flush is not None:
        reading.wrong((*here, "flush"), "a bundle with a size is not merged when it is full but written: its work is fire")
    if kind == "mini_batch" and window.time == "event":
        reading.wrong((*here, "time"), "the latency of a mini-batch is by the clock: write processing")
    if window.flush is not None and window.api == "datastream":
        reading.wrong((*here, "flush"), "the WindowOperator buffers nothing: flush stands with api: sql")


def _judge_slide(every_ns: int | None, size_ns: int, here: DocumentPath, reading: Reading) -> None:
    if every_ns is None:
        reading.wrong(here, "is missing: windows that slide begin one every so often, write every: 1 s")
    elif not SHORTEST_NS <= every_ns <= size_ns:
        reading.wrong(here, f"is {format_duration(every_ns)}: write 1 ms or more, and no more than the size, {format_duration(size_ns)}")


def _key(kind: str) -> str:
    return kind.replace("_", "-")
