"""Strategies known to be wrong, as changes of a sound world: some of their worlds must be caught."""


def _committing(world):
    """Vertices that commit, with the details of it written out."""
    vertices = [vertex for vertex in world["job"].values() if vertex.get("commit", "none") != "none"]
    for vertex in vertices:
        if isinstance(vertex["commit"], str):
            vertex["commit"] = {}
    return vertices


def _counting(world):
    """Unequal channels into a slow reader, and a failure."""
    world["checkpoint"] |= {"barriers": "at-least-once"}
    for vertex in world["job"].values():
        vertex.pop("max-parallelism", None)
        if "source" in vertex:
            _have_two_subtasks(vertex)
            if "records" in vertex["source"]:
                vertex["source"] |= {"records": 200}
    for vertex in _committing(world):
        vertex["service"] = "5 ms"
    world.pop("rescale", None)
    world["faults"] = [{"kill": "random-task", "at": "700 ms"}]


def _have_two_subtasks(vertex):
    """Without what is said of others, or of all that they emit."""
    vertex["parallelism"] = 2
    vertex["source"].pop("backlog", None)
    if "silent" in vertex["source"]:
        vertex["source"]["silent"] = 1
    factors = {subtask: factor for subtask, factor in vertex.pop("service-factor", {}).items() if int(subtask) < 2}
    if factors:
        vertex["service-factor"] = factors


def _dropping(world):
    """With files, so that something can be dropped, and checkpoints that are aborted."""
    for vertex in _committing(world):
        vertex["flush"] = {"share": "100 %", "bytes": "20 kB"}
    world["storage"] = {"bandwidth": "1 MB/s"}
    world["checkpoint"] |= {
        "operator-io": "async",
        "abort-policy": "drop",
        "timeout": "80 ms",
        "tolerable-failed": 10**6,
    }
    world["checkpoint"].pop("staging", None)


EXPIRING_NS = 100_000_000
"""Transactions of the wrong strategy expire so soon; those of sound worlds later."""


def _expiring(world):
    for vertex in _committing(world):
        vertex["commit"]["transaction-timeout"] = f"{EXPIRING_NS} ns"


def _finishing_afterwards(world):
    world.pop("rescale", None)
    world.pop("instances", None)
    world["actions"] = [{"stop": "savepoint-then-finish", "at": "400 ms"}]


def _finish(how):
    return lambda world: world["checkpoint"].update({"finish": how})


WRONG = {
    "at least once": _counting,
    "upload dropped on abort": _dropping,
    "commit at finish": _finish("commit-at-finish"),
    "discard at finish": _finish("discard"),
    "no checkpoints after tasks finish": _finish("off"),
    "transactions expire": _expiring,
    "stop with savepoint, then finish": _finishing_afterwards,
}
