"""Random events of a run: what somebody asks of the job, what goes wrong, how it is rescaled, who goes on from its snapshots."""

LONGEST_ABSENCE_MS = 300
"""... of a JobManager."""


def draw_actions(draw):
    """Savepoints, and perhaps a stop after them."""
    actions = []
    while draw.chance(0.25) and len(actions) < 3:
        actions.append({"savepoint": draw.pick("canonical", "native"), "at": draw.ms(30, 1000)})
    if draw.chance(0.2):
        begin = 1000 if actions else 20
        actions.append(
            {"stop": draw.pick("drain", "no-drain"), "at": draw.ms(begin, begin + 1500)}
            | draw.section(0.6, format=lambda: draw.pick("canonical", "native"))
        )
    return actions


def draw_rescale(draw, job):
    """One or two changes of parallelism, of what may be rescaled; None if nothing may."""
    candidates = [name for name, vertex in job.items() if movable(vertex)]
    if not candidates:
        return None
    rows = []
    for begin in (100, 1100)[: draw.pick(1, 1, 1, 2)]:
        names = draw.subset(candidates, 2)
        parallelism = {name: draw.randint(1, min(6, job[name].get("max-parallelism", 6))) for name in names}
        rows.append(
            {"at": draw.ms(begin, begin + 1000), "parallelism": parallelism}
            | draw.section(0.6, **{"from": lambda: draw.pick("checkpoint", "savepoint")})
        )
    return rows if len(rows) > 1 else rows[0]


def movable(vertex):
    """Whether a rescale may change its parallelism."""
    is_dealt_out = vertex.get("window", {}).get("time", "event") == "event"  # timers of processing time are not
    return is_dealt_out and not ("source" in vertex or vertex.get("commit", "none") != "none")


def draw_instances(draw, job, *, savepoints):
    """Jobs that begin from what the one before left; what they begin from is where it was.

    Whoever goes back to a savepoint after later output was committed writes that twice: no world does.
    """
    begins = draw.pick("checkpoint", "savepoint") if savepoints else "checkpoint"
    instances = {"count": draw.pick(1, 2, 2, 3), "from": begins} | draw.section(0.6, copied=lambda: "nothing")
    if any("changelog" in vertex.get("state", {}) for vertex in job.values()):
        # no-claim needs a full checkpoint, which a changelog never takes
        return instances | {"claim": draw.pick("claim", "legacy")}
    return instances | draw.section(0.6, claim=lambda: draw.pick("claim", "no-claim", "legacy"))


def draw_faults(draw, job, *, known_ms):
    """Up to four; what strikes after the end strikes nobody.

    `known_ms`: from then on the JobManager stays, for its successor knows nothing of the savepoint that the job stops or goes on with,
    and commits twice.  None: it may be lost at any time.
    """
    faults = []
    for _ in range(draw.pick(0, 0, 1, 1, 1, 2, 3, 4)):
        fault = _fault(draw, job)
        if known_ms is None or "job-manager" not in fault:
            faults.append(fault | _when(draw, fault))
        elif (latest_ms := known_ms - LONGEST_ABSENCE_MS - 20) > 20:
            faults.append(fault | {"at": draw.ms(20, latest_ms)})
    return faults


def _fault(draw, job):
    vertex = draw.choice(sorted(job))
    subtask = f"{vertex}[{draw.randrange(job[vertex]['parallelism'])}]"
    silent = draw.section(0.4, silent=lambda: draw.pick(True, True, False))
    return draw.pick(
        {"kill": draw.pick("random-task", subtask, vertex)},
        {"kill": subtask},
        {"kill": "random-task"},
        {"task-manager": draw.pick("random", "random", 0)} | silent,
        {"task-manager": "random"} | silent,
        {"job-manager": f"down-for {draw.ms(10, LONGEST_ABSENCE_MS)}"},
        {"storage": "outage", "lasts": draw.ms(50, 600)},
        {"network": draw.pick("random", 0), "lasts": draw.ms(10, 300)},
        {"slow": draw.pick(subtask, vertex), "factor": draw.randint(2, 6)}
        | draw.section(0.8, lasts=lambda: draw.ms(50, 600)),
    )


def _when(draw, fault):
    """Once, nearly always; by law rarely enough that the job gets on between two of them."""
    if draw.chance(0.06):
        return {"every": draw.fault_law(draw.pick("2 s", "4 s"))}
    if draw.chance(0.06):
        return _traced(draw, fault)
    return {"at": draw.ms(20, 2500)}


def _traced(draw, fault):
    if draw.chance(0.3):
        return {"trace": "faults.csv", "column": "gap_s", "between": True} | draw.section(
            0.5, unit=lambda: draw.pick("500 ms", "1 s")
        )
    traced = {"trace": "faults.csv", "column": "t_s"} | draw.section(
        0.4, where=lambda: {"kind": draw.pick("a", "b")}, unit=lambda: "700 ms"
    )
    traced |= draw.pick({"at": draw.ms(20, 900)}, {"from": draw.ms(20, 900)}, {})
    if "lasts" in fault and draw.chance(0.7):
        del fault["lasts"]
        traced["lasts-column"] = "lasts_s"
    return traced
