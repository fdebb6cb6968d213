"""What must come together for some mistakes to show, and seldom does by chance.  One world in four has one such set."""

from tests.worlds.draw import Draw, resized
from tests.worlds.events import movable

SHARE = 0.25
"""... of the worlds."""


def draw_together(seed, world):
    """Drawn behind all else, from numbers of its own: all other worlds stay what they were."""
    draw = Draw(f"together {seed}")
    if draw.chance(SHARE):
        draw.choice(list(TOGETHER.values()))(draw, world)


def _plain(world):
    """Vertices that may have a window, or another one."""
    changed = resized(world)
    return [
        name
        for name, vertex in world["job"].items()
        if "input" in vertex
        and "async-io" not in vertex
        and vertex.get("commit", "none") == "none"
        and name not in changed
    ]


def _subtask(draw, world):
    vertex = draw.choice(sorted(world["job"]))
    return f"{vertex}[{draw.randrange(world['job'][vertex].get('parallelism', 1))}]"


def _kills(draw, world, *times_ms):
    """Tasks fail at these times, in place of all else that goes wrong."""
    world["faults"] = [
        {"kill": draw.pick("random-task", _subtask(draw, world)), "at": f"{at_ms} ms"} for at_ms in times_ms
    ]


def _an_idle_source(draw, world):
    """A source pauses and goes on, another one does not, and a window reads both."""
    plain = _plain(world)
    if not plain:
        return
    name = draw.choice(plain)
    window = world["job"][name].get("window", {})
    if window.get("time") != "event":
        world["job"][name]["window"] = {"tumbling": draw.pick("40 ms", "150 ms"), "time": "event"}
    begin_ms = draw.randint(100, 300)
    rates = [
        {"at": "0 s", "rate": "100/s"},
        {"at": f"{begin_ms} ms", "rate": draw.pick("0/s", "1/s")},
        {"at": f"{begin_ms + draw.randint(200, 600)} ms", "rate": "100/s"},
    ]
    records = begin_ms // 10 + draw.randint(10, 40)
    marks = {"interval": draw.pick("3 ms", "20 ms"), "lateness": draw.pick("1 ms", "20 ms")}
    world["job"] = {
        "i0": {
            "source": {
                "record": "300 B",
                "rate-per-subtask": rates,
                "records-per-subtask": records,
                "watermark": marks | {"idle-timeout": draw.pick("10 ms", "30 ms", "100 ms")},
            },
            "parallelism": draw.pick(1, 2),
        }
    } | world["job"]
    for vertex in world["job"].values():
        if "source" in vertex:
            vertex["source"].setdefault("watermark", dict(marks))
    world["job"][name]["input"]["i0"] = "hash"


def _slices(draw, world):
    """Records stay in windows that slide, and a task is restarted meanwhile."""
    plain = _plain(world)
    if not plain:
        return
    window = {
        "sliding": draw.pick("200 ms", "600 ms"),
        "every": draw.pick("40 ms", "100 ms"),
        "state-per-record": "100 B",
    }
    window |= {"time": draw.pick("processing", "event")} | draw.section(0.6, api=lambda: draw.pick("sql", "datastream"))
    world["job"][draw.choice(plain)]["window"] = window
    world.setdefault("faults", []).append({"kill": _subtask(draw, world), "at": draw.ms(400, 1200)})


def _new_leader(draw, world):
    """Few restarts are allowed, and a new JobManager counts them anew."""
    _forget_savepoints(world)
    attempts = draw.pick(1, 2, 3)
    lost_ms = draw.randint(350, 700)
    before = [draw.randint(100, lost_ms - 100) for _ in range(draw.randint(1, attempts))]
    behind = [lost_ms + 250 + 150 * number for number in range(draw.randint(1, attempts))]
    _kills(draw, world, *before, *behind)
    world["faults"].append({"job-manager": f"down-for {draw.ms(10, 60)}", "at": f"{lost_ms} ms"})
    world["restart"] = {
        "strategy": "fixed-delay",
        "attempts": attempts,
        "delay": draw.ms(1, 20),
        "connection-reset": "10 ms",
    }


def _forget_savepoints(world):
    """A JobManager that is lost behind the request of a savepoint is drawn nowhere, see `draw_faults`."""
    world.pop("rescale", None)
    if "instances" not in world:
        world.pop("actions", None)


def _few_attempts(draw, world):
    """More tasks fail than the restart strategy allows."""
    attempts = draw.pick(0, 1, 2)
    begin_ms, step_ms = draw.randint(100, 300), draw.randint(150, 300)
    _kills(draw, world, *(begin_ms + number * step_ms for number in range(attempts + draw.pick(1, 2))))
    world["restart"] = {"strategy": "fixed-delay", "attempts": attempts, "delay": draw.ms(1, 20)}


def _regions(draw, world):
    """All subtasks of the same number are a region: no other one restarts with it."""
    subtasks = draw.pick(2, 2, 3)
    _forget_savepoints(world)
    for vertex in world["job"].values():
        vertex["parallelism"] = subtasks
        for key in ("max-parallelism", "service-factor", "union-state"):
            vertex.pop(key, None)
        if "source" in vertex:
            vertex["source"].pop("silent", None)
            if "records" in vertex["source"]:
                vertex["source"]["records"] = subtasks * max(1, vertex["source"]["records"] // subtasks)
        if isinstance(commit := vertex.get("commit"), dict) and commit.get("committer") == "global":
            vertex["commit"] = "two-phase"
        for writer, given in vertex.get("input", {}).items():
            details = given if isinstance(given, dict) else {}
            vertex["input"][writer] = {key: value for key, value in details.items() if key != "weights"} | {
                "ship": "forward"
            }
    _kills(draw, world, draw.randint(200, 500), draw.randint(700, 1500))
    world["restart"] = {"strategy": "fixed-delay", "delay": draw.ms(1, 60), "failover": "region"}


def _ends_in_turn(draw, world):
    """A short branch ends, a checkpoint knows that, and then a task fails.  Each task waits for its own last checkpoint."""
    readers = [name for name, vertex in world["job"].items() if "input" in vertex and "window" not in vertex]
    if not readers or any(action.get("stop") == "drain" for action in world.get("actions", ())):
        return
    reader, state = draw.choice(readers), {"size": draw.pick("1 kB", "20 kB")}
    for vertex in world["job"].values():
        vertex.pop("union-state", None)
    world["job"] = {
        "e0": {"source": {"record": "40 B", "rate": "100/s", "records": 5}},
        "e1": {
            "input": {"e0": draw.pick("hash", "rebalance")},
            "parallelism": draw.pick(1, 2),
            "service": "1 ms",
            "state": state | draw.section(0.6, backend=lambda: draw.pick("hashmap", "rocksdb")),
        },
        "e2": {"source": {"record": "40 B", "rate": "40/s", "records": 60}},
    } | world["job"]
    for writer in ("e1", "e2"):
        world["job"][reader]["input"][writer] = "hash"
    world["checkpoint"] |= {"interval": draw.ms(60, 120), "finish": "naive"}
    _kills(draw, world, draw.randint(400, 900))


def _long_backlog(draw, world):
    """A source reads its history for a second, and checkpoints are rarer meanwhile."""
    sources = [name for name, vertex in world["job"].items() if "source" in vertex]
    vertex = world["job"][draw.choice(sources)]
    given, subtasks = vertex["source"], vertex.get("parallelism", 1)
    for key in ("rate", "records", "rate-per-subtask", "records-per-subtask", "silent"):
        given.pop(key, None)
    records = draw.randint(60, 120)  # of each subtask
    given |= {
        "rate-per-subtask": "60/s",
        "records-per-subtask": records,
        "backlog": {"records": subtasks * draw.randint(40, records)},
    }
    world["checkpoint"]["interval"] = draw.ms(60, 120)
    world["checkpoint"]["interval-during-backlog"] = draw.pick("300 ms", "500 ms", "1 s", "off")


def _rescaled_in_flight(draw, world):
    """What waits in the channels, and lies in files, is dealt out among other subtasks."""
    job = world["job"]
    names = [
        name
        for name, vertex in job.items()
        if movable(vertex) and vertex.get("max-parallelism", 6) > 1 and "input" in vertex
    ]
    if not names:
        return
    name = draw.choice(names)
    world.pop("actions", None)
    world.pop("instances", None)
    before = job[name]["parallelism"]
    most = min(6, job[name].get("max-parallelism", 6))
    after = draw.choice([number for number in range(1, most + 1) if number != before] or [before])
    world["checkpoint"]["barriers"] = draw.pick("unaligned", "unaligned", {"aligned-timeout": "1 ms"})
    world["checkpoint"].pop("max-concurrent", None)
    world["checkpoint"].pop("forced-aligned", None)
    job[name]["service"] = draw.pick("4 ms", "8 ms")
    for writer, given in job[name]["input"].items():
        details = (
            {key: value for key, value in given.items() if key not in ("service", "weights")}
            if isinstance(given, dict)
            else {}
        )
        job[name]["input"][writer] = details | {"ship": "hash"}
    world.setdefault("storage", {})["inline-threshold"] = "0 B"
    world["rescale"] = {"at": draw.ms(200, 700), "from": "checkpoint", "parallelism": {name: after}}


def _saved_tables(draw, world):
    """Savepoints in Flink's own format between incremental checkpoints of the same tables."""
    names = [name for name, vertex in world["job"].items() if "input" in vertex]
    vertex = world["job"][draw.choice(names)]
    vertex["state"] = {
        "size": draw.pick("20 kB", "60 kB"),
        "backend": "rocksdb",
        "value": "100 B",
        "update": "50 %",
        "growth": draw.pick("40 B", "200 B"),
        "lsm": {"memtable": draw.pick("4 kB", "30 kB")},
    }
    world["checkpoint"] |= {"incremental": True, "interval": draw.ms(60, 150)}
    savepoints = [
        {"savepoint": draw.pick("native", "native", "canonical"), "at": draw.ms(200, 900)}
        for _ in range(draw.randint(1, 2))
    ]
    world["actions"] = savepoints + [
        action for action in world.get("actions", ()) if "stop" in action and _at_ms(action) > 900
    ]


def _at_ms(action):
    return int(action["at"].removesuffix(" ms"))


def _lost_machine(draw, world):
    """State has local copies, some on the disk of a machine that is lost."""
    names = [name for name, vertex in world["job"].items() if "input" in vertex]
    vertex = world["job"][draw.choice(names)]
    vertex.setdefault("state", {"size": "20 kB", "backend": draw.pick("hashmap", "rocksdb")})
    world["checkpoint"]["local-recovery"] = True
    world.setdefault("cluster", {}).pop("slots", None)
    world["cluster"]["placement"] = draw.pick("isolated", "spread")
    world["faults"] = [
        {"task-manager": "random", "at": draw.ms(300, 1500)},
        {"kill": _subtask(draw, world), "at": draw.ms(300, 1500)},
    ]


TOGETHER = {
    "an idle source beside an active one": _an_idle_source,
    "slices behind a restart": _slices,
    "a new JobManager with few attempts": _new_leader,
    "few attempts": _few_attempts,
    "regions": _regions,
    "ends in turn": _ends_in_turn,
    "a long backlog": _long_backlog,
    "a rescale with in-flight data": _rescaled_in_flight,
    "savepoints of shared tables": _saved_tables,
    "local copies on a machine that is lost": _lost_machine,
}
"""What is drawn together -> how a world gets it."""
