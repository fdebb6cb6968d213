"""`service-factor:` of a vertex: what reaches the model, and what is refused."""

from fractions import Fraction

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

TEXT = """# Who is slow?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}}
  op: {input: {src: hash}, parallelism: 12, service-factor: FACTORS}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


def factors(given):
    return loads(TEXT.replace("FACTORS", given), name="x").scenarios[0].job.vertices[1].service_factors


def test_factors_stand_by_the_number_of_a_subtask():
    assert ((2, Fraction(5, 4)), (10, Fraction(1, 2))) == factors("{10: 0.5, 2: 1.25}")


def test_a_factor_may_be_an_axis():
    study = loads(TEXT.replace("FACTORS", "{3: [1, 2]}"))

    assert [scenario.job.vertices[1].service_factors for scenario in study.scenarios] == [((3, 1),), ((3, 2),)]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            "{12: 2}",
            "x:5:62: job.op.service-factor.12: there is no subtask '12' of op: write a number from 0 to 11",
        ),
        ("{hot: 2}", "x:5:62: job.op.service-factor.hot: there is no subtask 'hot' of op: write a number from 0 to 11"),
        ("{3: 0}", "x:5:62: job.op.service-factor.3: is 0: a factor stands between 0.01 and 100"),
        ("{3: 101}", "x:5:62: job.op.service-factor.3: is 101: a factor stands between 0.01 and 100"),
        ("{3: 2 ms}", "x:5:62: job.op.service-factor.3: '2 ms' is not a number"),
        ("2", "x:5:45: job.op.service-factor: expected a mapping, not '2'"),
        ("{}", "x:5:45: job.op.service-factor: is empty: write at least one value"),
    ],
)
def test_mistakes_say_what_to_write(given, complaint):
    with pytest.raises(ScenarioError) as raised:
        factors(given)

    assert complaint in str(raised.value)
