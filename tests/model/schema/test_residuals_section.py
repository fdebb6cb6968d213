"""`residuals:` is read in its unit, and checked against the job."""

import pytest

from sim.model.schema.history import tail_sentence
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

TINY = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, parallelism: 2}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""
SECTION = """\
residuals:
  checkpoints: 3
  unit: 1 ms
  of:
    source: {scheduling: [[0, 5, 200]], acknowledgement: [[0, 0, 7], [1, 1, 1]]}
    sink: {async: [[30, 0, 900]]}
"""


def test_what_tails_rest_on_is_said():
    with_residuals, without = (loads(text).scenarios[0].residuals for text in (TINY + SECTION, TINY))

    assert (
        tail_sentence(with_residuals) == "tails are drawn from the residuals of 3 checkpoints of the job's own history"
    )
    assert tail_sentence(without) == ""


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (("    sink:", "    snk:"), "residuals.of.snk", "there is no vertex 'snk' (did you mean 'sink'?)"),
        (("async: [[30", "scheduling: [[30"), "residuals.of.sink.scheduling", "only sources are called"),
        (
            ("[30, 0, 900]", "[30, 0]"),
            "residuals.of.sink.async",
            "has 2 numbers for subtask 0: expected one for each of 3 checkpoints",
        ),
        (("[[30, 0, 900]]", "[]"), "residuals.of.sink.async", "is empty"),
        (("[30, 0, 900]", "[30, 0, -1]"), "residuals.of.sink.async", "expected 0 to"),
        (("  unit: 1 ms\n", ""), "residuals", "unit"),
        (("checkpoints: 3", "checkpoints: 0"), "residuals.checkpoints", "expected 1 to"),
    ],
)
def test_mistakes_are_told_at_their_place(change, path, message):
    with pytest.raises(ScenarioError) as refused:
        loads(TINY + SECTION.replace(*change, 1))
    problem = refused.value.problems[0]

    assert problem.path.startswith(path)
    assert message in f"{problem.path} {problem.message}"
    assert problem.line
