"""What is inferred from a real job is what was configured: the two saved jobs are our own, so the truth is known."""

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from tests.places import REST


def changed(changes=None, *, without=(), samples=True):
    """The scenario of the job with some of its answers changed; "@/config" is one about the cluster."""
    snapshot = read_saved(REST / "pressed.zip")
    for end, change in (changes or {}).items():
        path = end[1:] if end.startswith("@") else f"/jobs/{snapshot.job}{end}"
        snapshot.answers[path] = change(snapshot.answers[path])
    answers = {path: it for path, it in snapshot.answers.items() if not any(word in path for word in without)}
    return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples if samples else {}))


def test_without_anything_measured_everything_is_asked():
    inference = changed(samples=False, without=("/vertices/", "/details/", "checkpoints/config", "jobmanager"))
    runs = loads(inference.text, "imported")

    assert runs.warnings == ()
    assert len(inference.unknown) >= 10
    assert {
        "How often is a checkpoint taken?",
        "sink: How long does one record keep it busy?",
        "map: How much state does it keep?",
    } <= set(
        inference.unknown,
    )


@pytest.mark.parametrize(
    ("ship", "expected", "lost"),
    [
        ("REBALANCE", "rebalance", None),
        ("BROADCAST", "broadcast", None),
        ("GLOBAL", "global", None),
        ("RESCALE", "rescale", None),
        ("SHUFFLE", "rebalance", "sent at random"),
        ("CUSTOM", "hash", "a custom partitioner"),
        ("TELEPATHY", "rebalance", "'TELEPATHY'"),
        (None, "rebalance", "sent by an unknown ship strategy"),
    ],
)
def test_every_way_of_shipping(ship, expected, lost):
    """Those of Flink; what a scenario lacks is named."""

    def edit(plan):
        for node in plan["plan"]["nodes"]:
            for edge in node.get("inputs", ()):
                edge |= {"ship_strategy": ship, "exchange": "pipelined_bounded" if lost is None else "blocking"}
        return plan

    inference = changed({"/plan": edit})

    shipped = inference.document["job"]["map"]["input"]["src"]
    assert expected == (shipped["ship"] if isinstance(shipped, dict) else shipped)
    assert (lost is None) == (inference.not_modelled == ())
    assert lost is None or "a blocking exchange" in inference.not_modelled[0]
    assert lost is None or lost in inference.not_modelled[1]
    assert loads(inference.text, "imported").warnings == ()


def test_edges_stand_in_the_order_of_gates_and_twice_if_there_are_two():
    """Whatever the order of the plan; the file can be read, and says how its edges differ."""

    def edit(plan):
        for node in plan["plan"]["nodes"]:
            (edge,) = node.get("inputs") or [None]
            if edge is not None:
                node["inputs"] = [edge | {"num": 1, "ship_strategy": "REBALANCE"}, edge | {"num": 0}]
        return plan

    inference = changed({"/plan": edit})
    inputs = loads(inference.text, "imported").scenarios[0].job.vertex("map").inputs

    assert list(inference.document["job"]["map"]["input"]) == ["src", "src-2"]
    assert [(inlet.upstream, inlet.ship) for inlet in inputs] == [("src", "hash"), ("src", "rebalance")]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"/plan": lambda p: {"plan": {"nodes": p["plan"]["nodes"][:1]}}}, "lacks its vertex"),
        ({"/plan": lambda p: {"plan": {"nodes": []}}}, "nodes"),
        ({"/plan": lambda _: {"plan": 3}}, "/plan: "),
        ({"/checkpoints/config": lambda c: c | {"interval": "often"}}, "/checkpoints/config: interval"),
        ({"@/config": lambda _: {"flink-version": 3}}, "/config: flink-version"),
        ({"/jobmanager/config": lambda _: {"key": "value"}}, "/jobmanager/config"),
    ],
    ids=range(6),
)
def test_answers_that_make_no_sense_are_named(damage, message):
    """One line with the path of the answer."""
    with pytest.raises(RecordingError) as caught:
        changed(damage)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_that_goes_in_circles():
    def edit(plan):
        first, *_, last = plan["plan"]["nodes"]
        last.setdefault("inputs", []).append({"id": first["id"], "ship_strategy": "HASH"})
        return plan

    with pytest.raises(RecordingError, match="has a cycle"):
        changed({"/plan": edit})
