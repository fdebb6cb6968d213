"""Rules that few worlds meet by chance: worlds that meet them, and in how many worlds each acts.

One world in ten has one such set, drawn behind all else from numbers of its own, so all other worlds stay what they were.
"""

from itertools import pairwise

from sim.results.journal import EventType
from tests.worlds.draw import Draw

SHARE = 0.12
"""... of the worlds."""


def draw_rules(seed, world):
    draw = Draw(f"rules {seed}")
    if draw.chance(SHARE):
        draw.choice(SETS)(draw, world)


def _quiet(world):
    """Without events that end the job, or that the scheduler does not bear."""
    for key in ("rescale", "instances", "actions"):
        world.pop(key, None)


def _slots_that_come_back(draw, world):
    """A TaskManager is lost for some time, and an adaptive job does without it."""
    _quiet(world)
    world["cluster"] = world.get("cluster", {}) | {"placement": "spread", "slots": 1}
    world["restart"] |= {
        "scheduler": "adaptive",
        "replacement": draw.ms(150, 900),
        "stabilization": draw.ms(0, 90),
        "rescale-stabilization": draw.ms(0, 90),
        "cooldown": draw.ms(0, 300),
        "heartbeat-interval": "100 ms",
        "heartbeat-timeout": "150 ms",
    }
    world["checkpoint"]["interval"] = draw.ms(40, 90)
    world["faults"] = [{"task-manager": "random", "at": draw.ms(200, 700), "orderly": draw.pick(True, False)}]


def _slots_that_are_waited_for(draw, world):
    """A TaskManager is replaced later than its loss is noticed."""
    _quiet(world)
    world["restart"] |= {
        "replacement": draw.ms(150, 900),
        "heartbeat-interval": "100 ms",
        "heartbeat-timeout": "150 ms",
    }
    world["restart"].pop("scheduler", None)
    kinds = {"orderly": True}, {"silent": True}, {}
    world["faults"] = [{"task-manager": "random", "at": draw.ms(200, 900)} | draw.pick(*kinds)]


def _small_parts(draw, world):
    """Prefixes with limits of their own, and uploads in parts that checkpoints give up."""
    store = {
        "part": draw.pick("1 kB", "4 kB"),
        "parallel-parts": draw.pick(2, 4),
        "latency": draw.pick("8 ms", "30 ms"),
    }
    store |= {"prefixes": draw.pick(2, 4), "requests": draw.pick("40/s", "100/s")} if draw.chance(0.6) else {}
    world["storage"] = {"object-store": store, "inline-threshold": "0 B", "retry": {"attempts": 4, "backoff": "50 ms"}}
    world["checkpoint"] |= {"timeout": draw.pick("80 ms", "150 ms"), "tolerable-failed": 10**6, "operator-io": "async"}
    for vertex in world["job"].values():
        if "state" in vertex and draw.chance(0.6):
            vertex["state"]["size"] = "60 kB"


def _transactions_that_expire(draw, world):
    """A restart takes as long as the external system keeps a transaction, more or less."""
    _quiet(world)
    for vertex in world["job"].values():
        if isinstance(commit := vertex.get("commit"), str | dict) and commit != "none":
            options = {} if isinstance(commit, str) else commit
            vertex["commit"] = options | {"transaction-timeout": draw.pick("200 ms", "300 ms", "500 ms")}
    world["checkpoint"]["lost-notifications"] = draw.pick("60 %", "0 %")
    world["restart"] = {"strategy": "fixed-delay", "delay": draw.ms(100, 500)}
    world["faults"] = [{"kill": "random-task", "at": draw.ms(200, 1200)} for _ in range(2)]


def _slowdowns(draw, world):
    """Faults that slow the same tasks down at the same time."""
    vertex = draw.choice(sorted(world["job"]))
    world["faults"] = [
        {
            "slow": draw.pick(f"{vertex}[0]", vertex),
            "factor": draw.randint(2, 6),
            "at": draw.ms(50, 500),
            "lasts": draw.ms(200, 600),
        }
        for _ in range(2)
    ]


SETS = (
    _slots_that_come_back,
    _slots_that_come_back,
    _slots_that_are_waited_for,
    _small_parts,
    _small_parts,
    _transactions_that_expire,
    _slowdowns,
)


# ---- In which worlds a rule acts, as job instances and the journal say.


def _journal_has(result, event_type, words=""):
    return any(row.event_type is event_type and words in row.detail for row in result.journal)


def _restarts(result, kind=None):
    """Rows of restarts from a checkpoint, of one kind of cause if it is given."""
    rows = result.recoveries[result.recoveries["restored_checkpoint"] > 0]
    return rows if kind is None else rows[rows["kind"] == kind]


def _has_state(scenario, key):
    return any(vertex.state is not None and getattr(vertex.state, key) is not None for vertex in scenario.job.vertices)


def _is_slowed(jobs, *causes):
    return any(cause in causes for job in jobs for factors in job.context.speed._factors.values() for cause in factors)


def _deals_out(jobs):
    """Whether an instance began with in-flight records on an edge that it shares with other readers."""
    return any(
        before.context.names != job.context.names
        and any(
            int(part.position.captured.sum() + part.position.overtaken.sum())
            # the next instance forgets this checkpoint when it has others
            for part in before.contents.checkpoints.get(job.context.begun_from, {}).values()
        )
        for before, job in pairwise(jobs)
    )


ACTS = {
    "the loss of a TaskManager is detected": lambda _, result, __: len(_restarts(result, "task-manager")) > 0,
    "a restart waits for slots": lambda _, result, __: (
        (result.recoveries["deployed"] - result.recoveries["delayed"]).max() > 50
    ),
    "an adaptive job is rescaled": lambda _, result, __: _journal_has(result, EventType.RESCALED),
    "an adaptive job is rescaled to slots that are back": lambda _, result, jobs: (
        any(len(before.names) < len(job.names) for before, job in pairwise(jobs))
        and _journal_has(result, EventType.RESCALED)
    ),
    "a limit of requests refuses some": lambda scenario, result, _: (
        len(result.requests) > 0 and result.requests["refused"].sum() > 0 and scenario.storage.object_store.prefixes > 1
    ),
    "an upload in parts is given up": lambda scenario, _, jobs: (
        scenario.storage.object_store is not None
        and any(file.given_up_ns is not None and file.size_bytes for job in jobs for file in job.storage.files)
    ),
    "a transaction expires": lambda _, result, __: _journal_has(result, EventType.TRANSACTION_LOST),
    "in-flight records are redistributed": lambda _, __, jobs: _deals_out(jobs),
    "keys that expire are restored": lambda scenario, result, _: (
        _has_state(scenario, "ttl") and len(_restarts(result)) > 0
    ),
    "a changelog is materialized": lambda _, __, jobs: any(
        file.name[0] == "materialized" for job in jobs for file in job.storage.files
    ),
    "task threads wait for cores": lambda _, __, jobs: _is_slowed(jobs, "cores", "processor"),
    "a fault slows a task down": lambda _, __, jobs: _is_slowed(jobs, "fault"),
}
"""Rule -> whether it acts in a world: (scenario, result, job instances)."""


def acting(scenario, result, jobs):
    """The rules that act in a world."""
    return frozenset(rule for rule, acts in ACTS.items() if acts(scenario, result, jobs))
