"""A scenario file as an object."""

import pytest

import sim


def test_the_combinations_of_a_study_have_names_of_their_own(study):
    assert [scenario.name for scenario in study.scenarios] == ["small: aligned", "small: unaligned"]
    assert study.labels == ["aligned", "unaligned"]
    assert study.axes == {"checkpoint.barriers": ["aligned", "unaligned"]}
    assert study.question == "Which barriers?"


def test_a_combination_is_chosen_by_its_label_or_place(study):
    assert study["unaligned"].models[0].checkpoint.barriers.kind == "unaligned"
    assert study["unaligned"].models == study[1].models
    with pytest.raises(KeyError, match="there are aligned, unaligned"):
        study["aligne"]


@pytest.mark.parametrize("changes", [{"checkpoint.interval": "2 s"}, ["checkpoint.interval=2 s"]])
def test_a_changed_study_keeps_the_rest(study, changes):
    changed = study["unaligned"].with_(changes)

    assert [model.checkpoint.interval_ns for model in changed.models] == [2 * 10**9]
    assert changed.models[0].checkpoint.barriers.kind == "unaligned"
    assert study.models[0].checkpoint.interval_ns == 10**9


def test_an_axis_that_is_changed_is_no_longer_chosen(study):
    assert (study["unaligned"].with_({"checkpoint.barriers": ["aligned", {"aligned-timeout": "1 s"}]}).labels) == [
        "aligned",
        "aligned-timeout 1 s",
    ]


@pytest.mark.parametrize("changes", [{1: 2}, "checkpoint.interval=2 s", 7, [1], {"checkpoint.interval"}])
def test_changes_of_another_form_are_told_with_an_example(study, changes):
    with pytest.raises(TypeError, match=r'expected \{"checkpoint.interval": "10 s"\}'):
        study.with_(changes)


def test_no_changes_are_changes_of_no_kind(study):
    assert study.models == study.with_({}).models == sim.loads(study.text, "small", changes={}).models


def test_a_mistake_in_a_change_is_told_at_once(study):
    with pytest.raises(sim.ScenarioError, match=r"^changes: checkpoint\.intervall="):
        study.with_({"checkpoint.intervall": "2 s"})


def test_what_takes_one_combination_says_which_there_are(study):
    with pytest.raises(
        ValueError, match=r'simulate takes one combination, and small has 2: choose one, e.g. study\["aligned"\]'
    ):
        sim.simulate(study)
    with pytest.raises(TypeError, match="expected a study with a single combination"):
        sim.simulate("small.yaml")


def test_the_values_of_a_chosen_combination_can_be_set_again(study):
    assert study["unaligned"].pinned == ('checkpoint.barriers="unaligned"',)
    assert study["unaligned"].models[0].checkpoint == study.with_(study["unaligned"].pinned).models[0].checkpoint


def test_a_study_shows_its_question_and_its_combinations(study):
    assert "Which barriers?" in repr(study)
    assert "src x2 -> sink x2" in repr(study)
    assert "<td>unaligned</td>" in study._repr_html_()


def test_the_configuration_of_one_combination_can_be_pasted(study):
    assert "execution.checkpointing.unaligned.enabled: true" in study["unaligned"].flink_configuration().splitlines()


def test_a_recording_is_told_from_a_scenario(tmp_path):
    file = tmp_path / "x.json.gz"
    file.write_bytes(b"\x1f\x8b\x08")

    with pytest.raises(sim.ScenarioError, match="'ckptsim import' makes one of a recording"):
        sim.load(file)
