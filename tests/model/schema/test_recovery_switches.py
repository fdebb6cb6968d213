"""`checkpoint: {recover-output-on-downstream: ..., during-recovery: ...}` and Flink's keys for them."""

import pytest

from sim.model.schema.study import loads

TEXT = """# Who runs when?
version: 1
job:
  src: {{source: {{rate: 100/s, record: 1 kB}}}}
  op: {{input: {{src: hash}}}}
checkpoint: {{interval: 5 s{options}}}
run: {{duration: 10 s}}
{rest}
"""


def study(options="", rest=""):
    return loads(TEXT.format(options=options, rest=rest), name="x")


def switches(study):
    options = study.scenarios[0].checkpoint
    return options.recover_output_on_downstream, options.during_recovery


def test_the_second_needs_the_first():
    given = study(", during-recovery: true")

    assert switches(given) == (False, False)
    assert [
        "has no effect without recover-output-on-downstream: true" in str(warning) for warning in given.warnings
    ] == [True]


@pytest.mark.parametrize("profile", ["1.15", "1.20"])
def test_older_versions_have_neither(profile):
    given = study(", recover-output-on-downstream: true, during-recovery: true", f"cluster: {{profile: {profile}}}")

    assert switches(given) == (False, False)
    assert [f"with Flink {profile}: it came with 2.3" in str(warning) for warning in given.warnings] == [True, True]
