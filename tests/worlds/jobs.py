"""Random jobs: deep graphs, joins of joins, diamonds, several transactional sinks, cascades of them, requests to the outside.

Numbers of records and times per record are drawn together, so that a job has one or two seconds of work however it is
built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.worlds.draw import Document, resized

MOST_RECORDS = 1500  # that one vertex reads
MOST_WORK_S = 2.5  # of one subtask
SERVICES_US = (1, 100, 500, 1000, 2000, 4000)
RECORDS = ("1 B", "40 B", "300 B", "300 B", "2000 B", "2000 B", "6000 B", "9000 B")


@dataclass(slots=True)
class _Sketch:
    """A job while it is drawn."""

    job: Document = field(default_factory=dict)
    records: dict[str, float] = field(default_factory=dict)  # that each vertex emits on each of its outgoing edges
    unread: list[str] = field(default_factory=list)

    def readable(self):
        return list(self.records)

    def parallelism(self, name):
        return int(self.job[name].get("parallelism", 1))


def draw_job(draw, *, bounded):
    """Sources, operators, and sinks that read what nobody else reads; an unbounded job has one source that never ends."""
    sketch = _Sketch()
    for i in range(draw.pick(1, 1, 1, 2, 2, 3)):
        _add_source(draw, sketch, f"s{i}", bounded=bounded or i > 0)
    for i in range(draw.pick(0, 1, 1, 2, 2, 3, 4, 5)):
        _add_reader(draw, sketch, f"m{i}", _middle(draw))
    sinks, plain = draw.pick(1, 1, 2, 3), draw.chance(0.07)  # plain: nothing is committed
    for i in range(sinks):
        cascades = draw.chance(0.15)
        commit = {} if plain else {"commit": _commit(draw, cascades=cascades)}
        _add_reader(draw, sketch, f"k{i}", commit, last=i == sinks - 1, read_on=cascades)
    if sketch.unread and any(isinstance(sketch.job[name].get("commit"), dict) for name in sketch.unread):
        _add_reader(draw, sketch, "kk", {"commit": _commit(draw, cascades=False)}, last=True)
    return sketch.job


def _add_source(draw, sketch, name, *, bounded):
    parallelism = draw.pick(1, 1, 2, 2, 3, 5)
    rate = draw.pick(40, 100, 250)
    records_each = max(1, min(round(rate * draw.uniform(0.2, 2)), 500 // parallelism))
    source = {"record": draw.size_law(draw.pick(*RECORDS))}
    per_subtask = draw.chance(0.6)
    given = f"{rate if per_subtask else rate * parallelism}/s"
    if bounded and draw.chance(0.2):
        given = "unlimited"
    elif draw.chance(0.2):
        given = _steps(draw, rate)
    elif draw.chance(0.05):
        given = {"trace": "load.csv", "column": "per_second"} | draw.pick(
            {},
            {"time": "t_s"},
            {"every": "200 ms"},
            {"scale": 0.5},
            {"from": "300 ms"},
            {"scale": 2, "from": "1 s", "time": "t_s"},
        )
    source["rate-per-subtask" if per_subtask else "rate"] = given
    if bounded and draw.chance(0.7):
        source["records-per-subtask"] = records_each
    elif bounded:
        source["records"] = records_each * parallelism
    sketch.job[name] = {"source": source, "parallelism": parallelism} | draw.section(
        0.5, service=lambda: draw.pick("0 s", "50 us", "1 ms")
    )
    _keep(sketch, name, float(records_each * parallelism))


def _steps(draw, rate):
    """A lull or a peak."""
    begin = draw.randint(50, 600)
    between = draw.pick("0/s", f"{3 * rate}/s", "1/s")
    return [
        {"at": "0 s", "rate": f"{rate}/s"},
        {"at": f"{begin} ms", "rate": between},
        {"at": f"{begin + draw.randint(50, 700)} ms", "rate": f"{rate}/s"},
    ]


def _middle(draw):
    """What an operator does beside serving records."""
    if draw.chance(0.2):
        return {
            "async-io": {"latency": draw.duration_law(draw.pick("1 ms", "5 ms", "40 ms"))}
            | draw.section(0.7, capacity=lambda: draw.pick(1, 3, 20))
        }
    if draw.chance(0.08):
        return {"commit": _commit(draw, cascades=draw.chance(0.5))}
    return {}


def _commit(draw, *, cascades):
    """`cascades`: records go on when they are committed."""
    if not cascades and draw.chance(0.3):
        return "two-phase"
    commit = draw.section(0.3, time=lambda: draw.pick("1 ms", "15 ms"), transaction_timeout=lambda: "1 h")
    if cascades:
        return commit | {"emits": "on-commit"}
    if draw.chance(0.3):
        commit["holds-back"] = draw.pick(1, 3, 20)
    return commit | draw.section(0.4, committer=lambda: draw.pick("chained", "global"), emits=lambda: "at-once")


def _add_reader(draw, sketch, name, extra, *, last=False, read_on=True):
    """`last`: it reads all that nobody else has read."""
    upstream = (
        draw.subset(sketch.readable(), 3) if not last else list(sketch.unread) or draw.subset(sketch.readable(), 2)
    )
    parallelism = draw.pick(1, 1, 2, 2, 3, 3, 4, 6)
    inputs, records = dict[str, Any](), 0.0
    for up in upstream:
        ship = _ship(draw, sketch, up, parallelism)
        records += sketch.records[up] * (parallelism if ship == "broadcast" else 1)
        inputs[up] = ship
    work_us = [service_us for service_us in SERVICES_US if records / parallelism * service_us <= MOST_WORK_S * 1e6]
    job_service = draw.duration_law(f"{draw.choice(work_us)} us")
    for up, ship in inputs.items():
        details = draw.section(
            0.3,
            service=lambda: draw.duration_law(f"{draw.choice(work_us)} us"),
            record=lambda: draw.size_law(draw.pick(*RECORDS)),
        )
        if ship == "hash" and draw.chance(0.15):
            details["weights"] = _weights(draw, parallelism)
        inputs[up] = {"ship": ship} | details if details or draw.chance(0.5) else ship
    vertex = {
        "input": inputs,
        "parallelism": parallelism,
        "service": job_service,
        "record": draw.size_law(draw.pick(*RECORDS)),
    }
    fan_outs = [1, 1, 0.5, 0.7, 0, 1.5, 2]
    fan_out = draw.pick(*[factor for factor in fan_outs if records * factor <= MOST_RECORDS / 2])
    vertex |= {"fan-out": fan_out} if fan_out != 1 or draw.chance(0.1) else {}
    if len(upstream) > 1 and draw.chance(0.6):
        vertex["combine"] = draw.pick("join", "join", "union")
    vertex |= extra | _details(draw, parallelism)
    sketch.job[name] = vertex
    sketch.unread = [vertex for vertex in sketch.unread if vertex not in upstream]
    if read_on:
        _keep(sketch, name, records * fan_out)


def _keep(sketch, name, records):
    sketch.records[name] = records
    sketch.unread.append(name)


def _ship(draw, sketch, upstream, readers):
    ships = ["hash", "hash", "hash", "rebalance", "rescale", "global"]
    if sketch.parallelism(upstream) == readers:
        ships += ["forward", "forward"]
    if sketch.records[upstream] * readers <= MOST_RECORDS / 2:
        ships.append("broadcast")
    return draw.choice(ships)


def _weights(draw, readers):
    if draw.chance(0.4):
        return {"hot": draw.pick("70 %", "95 %")}
    if draw.chance(0.5):
        return [draw.randint(1, 5) for _ in range(readers)]
    return {"counted": [draw.randint(1, 5) for _ in range(draw.randint(1, 4))]} | draw.section(
        0.5, excess=lambda: draw.pick("one-key", "key-groups")
    )


def _details(draw, parallelism):
    """State, work per snapshot and files of an operator."""
    details = {}
    if draw.chance(0.45):
        details["state"] = _state(draw)
    if draw.chance(0.3):
        details["snapshot"] = draw.section(
            0.5,
            pre_barrier=lambda: draw.pick("5 ms", "40 ms"),
            sync=lambda: "4 ms",
            operator_state=lambda: draw.pick("60 B", "30 kB"),
            probability=lambda: draw.pick("30 %", "70 %"),
            **{"async": lambda: draw.pick("30 ms", "120 ms")},
        )
    if draw.chance(0.25):
        amount = draw.pick({"share": "20 %"}, {"bytes": "20 kB"}, {"share": "100 %", "bytes": "1 kB"})
        details["flush"] = amount | draw.section(0.6, files=lambda: draw.randint(1, 3))
    if draw.chance(0.05):
        details["union-state"] = True
    if draw.chance(0.15):
        details["max-parallelism"] = parallelism + draw.pick(0, 1, 2, 13)
    return details


def _state(draw):
    state = {"size": draw.pick("1 kB", "20 kB", "120 kB")} | draw.section(
        0.7,
        backend=lambda: draw.pick("hashmap", "rocksdb", "rocksdb"),
        update=lambda: draw.pick("20 %", "100 %"),
        value=lambda: draw.pick("1 B", "100 B", "1 kB"),
    )
    state |= draw.section(0.15, freeze=lambda: draw.pick("1 ms", "8 ms"))
    if state.get("backend") != "rocksdb":
        state |= draw.section(0.15, serialize=lambda: "4 MB/s")
    elif draw.chance(0.3):
        state["lsm"] = draw.section(
            0.6,
            memtable=lambda: draw.pick("4 kB", "30 kB"),
            managed_memory=lambda: "100 kB",
            level0_files=lambda: draw.pick(1, 2, 4),
            base=lambda: "40 kB",
            multiplier=lambda: draw.pick(2, 4),
            table=lambda: "8 kB",
            flush=lambda: "5 MB/s",
            compaction=lambda: draw.pick("500 kB/s", "5 MB/s"),
            compaction_thread=lambda: draw.pick("subtask", "task-manager"),
            link=lambda: "1 ms",
            wait=lambda: draw.pick("10 %", "100 %"),
        )
    if draw.chance(0.3):
        state["changelog"] = "on" if draw.chance(0.15) else _changelog(draw)
    return state


def _changelog(draw):
    return draw.section(
        0.6,
        materialize=lambda: draw.pick("60 ms", "200 ms", "1 s"),
        threshold=lambda: draw.pick("1 B", "1 kB", "20 kB"),
        batch_delay=lambda: draw.pick("0 s", "5 ms", "30 ms"),
        batch_size=lambda: draw.pick("1 B", "2 kB", "1 MB"),
        upload_threads=lambda: draw.pick(1, 2),
        upload_timeout=lambda: draw.pick("0 s", "20 ms", "50 ms", "1 s"),
        upload_attempts=lambda: draw.pick(1, 3),
        reports_materialized=lambda: draw.pick(True, False),
    )


def draw_windows(draw, world):
    """Some operators hold records until their window ends.  Drawn behind all else: other worlds stay what they were."""
    changed = resized(world)
    for name, vertex in world["job"].items():
        plain = "input" in vertex and "async-io" not in vertex and "commit" not in vertex and name not in changed
        if plain and draw.chance(0.25):
            vertex["window"] = _window(draw)
            sources = [source["source"] for source in world["job"].values() if "source" in source]
            if vertex["window"]["time"] == "event" and draw.chance(0.4):
                draw.choice(sources)["watermark"] = draw.section(
                    0.7, interval=lambda: draw.pick("3 ms", "50 ms"), lateness=lambda: draw.pick("1 ms", "200 ms")
                )
            if draw.chance(0.5):
                world["checkpoint"]["interruptible-timers"] = draw.pick(True, True, False)


def draw_first_stages(draw, world):
    """Some sources have the first stage of an aggregation in their chain.  Drawn behind all else, too."""
    changed = resized(world)
    for name, vertex in world["job"].items():
        if "source" in vertex and name not in changed and draw.chance(0.12):
            kind = {"tumbling": draw.pick("150 ms", "600 ms"), "time": "event", "stage": "local"}
            batch = {"tumbling": draw.pick("40 ms", "300 ms"), "time": "processing", "stage": "local"}
            vertex["window"] = draw.pick(kind, batch) | draw.section(0.5, fire=lambda: draw.pick("100 us", "1 ms"))


def draw_growth(draw, world):
    """Some state gets new keys.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if "state" in vertex and draw.chance(0.3):
            vertex["state"]["growth"] = draw.pick("1 B", "40 B", "2 kB")
            vertex["state"] |= draw.section(0.3, limit=lambda: draw.pick("0 B", "20 kB", "2 MB"))


def draw_expiry(draw, world):
    """Some state expires, sooner or later than a run ends.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if "state" in vertex and draw.chance(0.15):
            vertex["state"]["ttl"] = draw.pick("0 s", "70 ms", "900 ms", "1 h")
            vertex["state"] |= draw.section(
                0.4, ttl_checks=lambda: draw.pick(0, 1, 500), ttl_filter=lambda: draw.pick("true", "false")
            )


def draw_logs(draw, world):
    """Some changelogs lie in memory.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if isinstance(vertex.get("state", {}).get("changelog"), dict) and draw.chance(0.3):
            vertex["state"]["changelog"] |= {"storage": "memory"} | draw.section(
                0.5, change_copy=lambda: draw.pick("0 s", "20 us"), change_send=lambda: draw.pick("0 s", "50 us")
            )


def draw_edges(draw, world):
    """Some edges get a share of what their writer emits.  Drawn behind all else, too."""
    job = world["job"]
    for vertex in job.values():
        inputs = vertex.get("input", {})
        for writer in [name for name in inputs if draw.chance(0.1)]:
            given = inputs[writer] if isinstance(inputs[writer], dict) else {"ship": inputs[writer]}
            inputs[writer] = given | {"fan-out": draw.pick(0, 0.5, 1)}


def draw_second_edges(draw, world):
    """Some vertices read another one twice: a join of a stream with itself, or a side output.  Drawn behind all else, too."""
    job = world["job"]
    for vertex in job.values():
        inputs = vertex.get("input", {})
        for writer in [name for name in inputs if draw.chance(0.06)]:
            ship = draw.pick("hash", "rebalance", "rescale", "global")
            inputs[f"{writer}-again"] = {"from": writer, "ship": ship, "fan-out": draw.pick(0, 0.5, 1)} | draw.section(
                0.4, service=lambda: draw.pick("1 us", "200 us"), record=lambda: draw.size_law(draw.pick(*RECORDS))
            )
            vertex.setdefault("combine", draw.pick("join", "join", "union"))
            if vertex["combine"] == "join" and writer == list(inputs)[-2] and draw.chance(0.5):
                for name in (writer, f"{writer}-again"):
                    inputs[name] = (inputs[name] if isinstance(inputs[name], dict) else {"ship": inputs[name]}) | {
                        "union": "both"
                    }
            if draw.chance(0.3):
                job[writer].setdefault("outputs", {})["late"] = {
                    "fan-out": inputs[f"{writer}-again"].pop("fan-out")
                } | draw.section(0.5, record=lambda: draw.size_law(draw.pick(*RECORDS)))
                inputs[f"{writer}-again"].pop("record", None)
                inputs[f"{writer}-again"]["output"] = "late"


def draw_waits(draw, world):
    """Some sources wait in poll, or with the lock.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if "source" in vertex and draw.chance(0.15):
            vertex["source"]["waits"] = draw.pick("poll", "lock", "lock", "mailbox")


def draw_service_factors(draw, world):
    """Some subtasks work slower or faster than others of their vertex.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if draw.chance(0.1):
            subtasks = draw.subset(range(vertex.get("parallelism", 1)), 2)
            vertex["service-factor"] = {str(subtask): draw.pick(0.5, 1.25, 3) for subtask in subtasks}


def draw_backlogs(draw, world):
    """Some sources report a backlog, and checkpoints are rarer meanwhile, or there are none.  Drawn behind all else, too."""
    for vertex in world["job"].values():
        if "source" in vertex and draw.chance(0.2):
            vertex["source"]["backlog"] = _backlog(draw, vertex["source"])
            if draw.chance(0.8) and "flink" not in world:
                world["checkpoint"]["interval-during-backlog"] = draw.pick("400 ms", "1 s", "off")


def _backlog(draw, source):
    unlimited = "unlimited" in (source.get("rate"), source.get("rate-per-subtask"))
    if unlimited or draw.chance(0.5):
        return {
            "records": draw.pick(1, 5, 40) if "records" not in source and "records-per-subtask" not in source else 1
        }
    return {"lag": draw.pick("0 s", "20 ms", "300 ms")}


def draw_residuals(draw, world):
    """Some jobs have a history with residuals.  Drawn behind all else, too."""
    if not draw.chance(0.1):
        return
    checkpoints = draw.pick(1, 2, 5)
    parts = ("scheduling", "sync", "async", "acknowledgement")
    of = {
        name: {
            part: [[draw.pick(0, 0, 1, 7, 60) for _ in range(checkpoints)] for _ in range(draw.pick(1, 2))]
            for part in parts[0 if "source" in vertex else 1 :]
            if draw.chance(0.6)
        }
        for name, vertex in world["job"].items()
    }
    world["residuals"] = {"checkpoints": checkpoints, "unit": draw.pick("1 ms", "400 us"), "of": of}


def _window(draw):
    window = {
        "tumbling": draw.pick("40 ms", "150 ms", "600 ms"),
        "time": draw.pick("processing", "event", "event"),
    }
    window |= draw.section(
        0.6,
        fire=lambda: draw.pick("100 us", "1 ms"),
        phase=lambda: draw.pick("7 ms", "39 ms"),
        state_per_record=lambda: draw.pick("1 B", "100 B", "5 kB"),
        api=lambda: draw.pick("sql", "sql", "datastream"),
    )
    return _of_another_kind(draw, window) if draw.chance(0.5) else window


def _of_another_kind(draw, window):
    """A window that slides, waits for a gap or leaves before barriers; in the tumbling one it is made of only the kind is another."""
    size = window.pop("tumbling")
    kind = draw.pick("sliding", "session", "clock", "local", "flush")
    if kind == "sliding":
        window.pop("phase", "")
        return {"sliding": size, "every": draw.pick("10 ms", "40 ms")} | window
    if kind == "session":
        window.pop("phase", "")
        return {"session": size} | ({"lasts": draw.pick("20 ms", "300 ms")} if draw.chance(0.5) else {}) | window
    if kind == "clock":
        window["time"] = "processing"
    if kind == "flush":
        window["api"], window["flush"] = "sql", draw.pick("20 us", "500 us")
    return {"tumbling": size} | window | ({"stage": "local"} if kind in ("local", "clock") else {})
