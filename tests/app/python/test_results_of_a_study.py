"""What a study gives."""

import json
from html import unescape

import pytest

import sim


def test_tables_name_the_strategy_of_every_row(results):
    assert list(results.checkpoints.columns[:3]) == ["strategy", "replication", "id"]
    assert {"aligned", "unaligned"} == set(results.checkpoints["strategy"])
    assert {"unaligned"} == set(results["unaligned"].subtasks["strategy"])
    assert list(results.table["strategy"]) == ["aligned", "unaligned"]


@pytest.mark.parametrize("name", ["subtasks", "series", "commits", "recoveries"])
def test_every_table_of_a_run_is_an_attribute(results, name):
    rows = sum(len(run.tables[name]) for runs in results.runs.values() for run in runs)

    assert rows == len(getattr(results, name))


def test_results_show_the_answer_and_stay_short(results):
    assert results.verdict in repr(results)
    assert results.verdict.replace("'", "&#x27;") in results._repr_html_()
    assert len(repr(results.runs["aligned"][0])) < 1000
    assert "4 COMPLETED" in repr(results.runs["aligned"][0]), "they begin after 21 ms, and each second later"


def test_a_long_table_says_what_it_leaves_out(study):
    variants = study["aligned"].with_(
        {"checkpoint.interval": [f"{900 + k} ms" for k in range(31)], "run.duration": "1 s"}
    )

    assert "... and 1 more rows" in repr(variants)


@pytest.mark.parametrize("name", ["durations", "timeline", "throughput", "lag", "in_flight", "back_pressure"])
def test_every_plot_is_a_picture(results, name):
    assert getattr(results.plot, name)()._repr_png_().startswith(b"\x89PNG")


def test_a_plot_of_one_checkpoint_names_those_there_are(results):
    with pytest.raises(KeyError, match="no checkpoint 99: there are 1 to"):
        results.plot.timeline(99)
    with pytest.raises(KeyError, match="there are aligned, unaligned"):
        results.plot.timeline(1, strategy="none")


def test_an_explanation_has_parts_that_sum_to_the_duration(results):
    explanation = results.explain(2, strategy="aligned")

    row = results["aligned"].checkpoints.query("id == 2")
    assert row["end_to_end_duration"].iloc[0] == pytest.approx(explanation.parts["duration_ms"].sum())
    assert explanation.sentences[0].startswith("Checkpoint 2 (aligned) took")
    assert explanation.sentences[0].split()[0] in repr(explanation)
    with pytest.raises(LookupError, match="no checkpoint 99"):
        results.explain(99)


def test_a_report_is_a_file(results, tmp_path):
    assert results.report(tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_report_is_displayed_below_a_cell(results, tmp_path):
    """It is the same page, quoted, so that nothing of it ends the frame."""
    frame = results.show(height=500)._repr_html_()

    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert frame.count('"') == 4
    assert unescape(frame.split('"')[1]) == results.report(tmp_path / "page.html").read_text()


def test_an_import_has_its_history_beside_its_results(study, tmp_path):
    compared = "{observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}, predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}}"
    imported = sim.loads(f"{study.text}backtest: {{runs: 3, simulated: 90 s, end-to-end: {compared}}}\n", "imported")
    done = imported["aligned"].run(jobs=1, folder=tmp_path / "kept")

    assert json.loads((tmp_path / "kept" / "comparison.json").read_text())["history"]["checkpoints"] == 20
    assert "The unchanged job, compared with its history" in done.report(tmp_path / "page.html").read_text()


def test_a_study_without_checkpoints_has_nothing_to_explain_or_draw(study):
    bare = study["aligned"].with_({"checkpoint.interval": "off"})

    with pytest.raises(LookupError, match="no strategy takes checkpoints"):
        bare.explain()
    with pytest.raises(LookupError, match="no strategy takes checkpoints"):
        bare.player()


def test_studies_and_results_stand_side_by_side_under_names(study, results):
    other = study["aligned"].with_({"checkpoint.interval": "500 ms"})

    both = sim.compare({"today": results["aligned"], "half": other}, jobs=1)

    assert both.strategies == ["today", "half"]
    assert "today, aligned" not in both.verdict
    assert 2 * len(both["today"].checkpoints) == pytest.approx(len(both["half"].checkpoints), abs=1)
    assert both.table["throughput_change"].notna().all()


def test_several_combinations_of_a_named_study_keep_their_own_names(results):
    assert sim.compare({"a": results, "b": results["aligned"]}).strategies == ["a, aligned", "a, unaligned", "b"]


def test_nothing_to_compare_is_told():
    with pytest.raises(ValueError, match="nothing to compare"):
        sim.compare()
    with pytest.raises(TypeError, match=r"expected a study \(sim.load\) or the path"):
        sim.compare(7)


def test_tables_have_units_and_no_duration_of_what_is_under_way(study):
    """A duration so far would shorten every mean."""
    results = study["aligned"].with_({"run.duration": "3025 ms"}).run(jobs=1)
    rows = results.checkpoints

    assert rows["end_to_end_duration"].isna().tolist() == (rows["status"] == "IN_PROGRESS").tolist()
    assert rows["end_to_end_duration"].isna().any()
    assert rows.attrs["units"]["end_to_end_duration"] == "ms"
    assert results.frame("path").attrs["units"]["duration"] == "ns"
    assert results.table.attrs["units"]["end_to_end_p50_ms"] == "ms"


def test_labels_are_completed(study, results):
    assert study._ipython_key_completions_() == results._ipython_key_completions_() == ["aligned", "unaligned"]


def test_axes_of_quantities_are_numbers_too(study):
    """Texts of intervals do not sort by size; barrier modes have no number."""
    table = study.with_({"checkpoint.interval": ["1500 ms", "800 ms"]}).run(jobs=1).table

    assert table["checkpoint.interval_ms"].tolist() == [1500.0, 1500.0, 800.0, 800.0]
    assert [name for name in table if name.startswith("checkpoint.barriers")] == ["checkpoint.barriers"]


def test_a_checkpoint_is_played_below_the_cell(results):
    """It is an iframe with its own style and script; a name that others chose ends no script."""
    shown = results.player(2, strategy="unaligned")

    assert 'class="player"' in shown.page
    assert unescape(shown._repr_html_().split('srcdoc="')[1].split('" style=')[0]) == shown.page
    with pytest.raises(LookupError, match="no checkpoint 99"):
        results.player(99)
