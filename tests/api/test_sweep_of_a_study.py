"""Sweeps from Python."""

import pytest

import sim


def test_axes_are_given_as_lists(study, tmp_path):
    swept = sim.sweep(study["aligned"], {"checkpoint.interval": ["500 ms", "1 s"]}, folder=tmp_path, replications=2, jobs=1)

    rows = swept.results.query("strategy != 'none'")
    assert 4 == len(rows)
    assert {"500 ms", "1 s"} == set(rows["checkpoint.interval"])
    assert tmp_path == swept.folder
    assert "<table" in swept._repr_html_()


@pytest.mark.parametrize("axes", [{"checkpoint.interval": "10 s"}, {"checkpoint.interval": []}, ["checkpoint.interval"]])
def test_values_that_are_no_list_are_told_with_an_example(study, axes):
    with pytest.raises(TypeError, match="axes: "):
        sim.sweep(study, axes)


def test_a_sweep_without_a_question_has_no_picture(study, tmp_path):
    swept = sim.sweep(study, folder=tmp_path, jobs=1)

    with pytest.raises(ValueError, match="has no question"):
        swept.picture()
