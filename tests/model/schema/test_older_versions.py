"""`cluster: {version: ...}` of a Flink that is older than the oldest profile: its own defaults, and a warning that names them."""

import pytest

from sim.model.schema.study import loads

TEXT = """\
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB, records: 100}}
  op: {input: {src: hash}}
checkpoint: {interval: 5 s%s}
cluster: {version: %s}
restart: {strategy: fixed-delay}
run: {duration: 10 s}
"""


@pytest.mark.parametrize(
    ("version", "written", "finish", "failures"),
    [
        ("1.13.6", "", "off", None),  # FLIP-147 came with 1.14, FLINK-23209 with 1.14
        ("1.13.6", ", finish: flink", "flink", None),  # what is written stays
        ("1.14", "", "off", 2),  # FLIP-147 was off by default
        ("1.15.0", "", "flink", 2),
        ("2.x", "", "flink", 2),
    ],
)
def test_the_defaults_of_an_older_flink(version, written, finish, failures):
    study = loads(TEXT % (written, version))
    (scenario,) = study.scenarios

    assert (scenario.checkpoint.finish, scenario.restart.heartbeat_failures) == (finish, failures)
    assert [
        str(warning) for warning in study.warnings if "is simulated as 1.15, the oldest modelled" in str(warning)
    ] == [str(warning) for warning in study.warnings if version.startswith(("1.13", "1.14"))]


def test_the_warning_names_what_differs():
    (warning,) = loads(TEXT % ("", "1.14.3")).warnings

    assert "1.14.3 is simulated as 1.15, the oldest modelled, but for checkpoint.finish is off" in str(warning)
