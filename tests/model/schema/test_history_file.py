"""`history:` names a JSON file beside the scenario; what it says counts as if it stood there, and its mistakes are told at their place."""

import errno
import json
import pickle
from pathlib import Path

import pytest

from sim.model.schema.history_file import inline_history, split_history, write_scenario_and_history
from sim.model.schema.study import load, loads
from sim.model.schema.text import ScenarioError
from sim.studies.plan import cells

TINY = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, parallelism: 2}
checkpoint: {interval: 1 s}
"""
HISTORY = """\
# what 3 checkpoints of the history took beyond the model
residuals:
  checkpoints: 3
  unit: 1 ms
  of:
    source: {scheduling: [[0, 5, 200]], acknowledgement: [[0, 0, 7], [1, 1, 1]]}
    sink: {async: [[30, 0, 900]]}
backtest:
  runs: 3
  simulated: 90 s
  longest: [12.35 s, 1 s]
  tail: 1.25
  end-to-end:
    observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}
    predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}
    off: [p90]
    cause: "a tail: \\"p90\\" is # 2.2 times p50"
"""
RUN = "# how long\nrun: {duration: 3 s}\n"
INLINE = TINY + HISTORY + RUN
SEEN = {
    "id": [1, 2, 3, 5],
    "first": 1,
    "end_to_end_duration": [90000, 1000, 12351, None],
    "state_size": [1, 2, 3, None],
}


@pytest.fixture
def job(tmp_path):
    """The scenario in two files."""
    write_scenario_and_history(INLINE, tmp_path / "job.yaml", SEEN)
    return tmp_path / "job.yaml"


def history_of(job):
    return job.parent / "job.history.json"


def changed(job, change):
    found = json.loads(history_of(job).read_text())
    change(found)
    history_of(job).write_text(json.dumps(found))


def test_two_files_say_what_one_said(job):
    """The longest durations are those of the checkpoints, to four digits; the job's first one does not count."""
    inline, found = loads(INLINE, "job"), load(job)

    assert inline.scenarios == found.scenarios
    assert inline.backtest == found.backtest
    assert found.backtest.longest_ms == (12350.0, 1000.0)
    assert found.backtest.imported == found.scenarios[0]


def test_of_a_long_history_the_latest_are_listed(tmp_path):
    """The longest were among the earlier ones."""
    write_scenario_and_history(INLINE, tmp_path / "job.yaml", {"id": [9], "earlier": 8, "end_to_end_duration": [500]})

    assert loads(INLINE).backtest == load(tmp_path / "job.yaml").backtest


def test_nothing_to_keep_makes_no_file(tmp_path):
    write_scenario_and_history(TINY + RUN, tmp_path / "job.yaml")

    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]
    assert (tmp_path / "job.yaml").read_text() == TINY + RUN


def test_a_scenario_that_cannot_be_written_leaves_the_older_pair(job, monkeypatch):
    """Both are of one import."""
    before = job.read_text(), history_of(job).read_text()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "full")

    for method in ("write_text", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, full)
            with pytest.raises(OSError, match="No space left"):
                write_scenario_and_history(INLINE.replace("runs: 3", "runs: 2"), job)

        assert before == (job.read_text(), history_of(job).read_text())


def test_a_device_gets_all_of_it():
    write_scenario_and_history(INLINE, Path("/dev/null"))

    assert not Path("/dev/null.history.json").exists()


@pytest.mark.parametrize("name", ["a b.yaml", "a#: 'b'.yaml", "ä.yaml"])
def test_odd_names_read_back(tmp_path, name):
    write_scenario_and_history(INLINE, tmp_path / name)

    assert loads(INLINE).backtest == load(tmp_path / name).backtest


def test_a_cell_is_another_if_the_history_is(job):
    """Its name is a hash of what runs; the scenario is the same to the byte."""
    before = cells(load(job).scenarios)[0].id
    changed(job, lambda found: found["residuals"]["of"]["sink"].update({"async": [[30, 0, 901]]}))
    after = cells(load(job).scenarios)[0].id
    changed(job, lambda found: found["backtest"].update(runs=2))

    assert before != after == cells(load(job).scenarios)[0].id


def test_a_cell_needs_no_file_where_it_runs(job):
    """A worker elsewhere gets the tails with it."""
    (cell,) = cells(load(job).scenarios)
    packed = pickle.dumps(cell)
    history_of(job).unlink()

    assert cell == pickle.loads(packed)
    assert pickle.loads(packed).scenario.residuals.checkpoints == 3


def test_overrides_may_name_another(job, tmp_path):
    """The job as it was imported is read with its own."""
    history_of(job).rename(tmp_path / "other.json")

    assert load(job, ["history=other.json"]).backtest.compared == loads(INLINE).backtest.compared


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (None, "job.yaml:", "job.history.json: no such file; 'ckptsim import' writes it next to the scenario"),
        ('{"version": "1",\n "backtest": {"runs": 3', "job.history.json:2:", "is not JSON: Expecting ',' delimiter"),
        ("", "job.history.json:1:1", "is not JSON"),
        ("[1, 2]", "job.history.json", "is not a history file: a history file has the keys version, checkpoints"),
        ('{"jobs": [{"id": "a", "status": "RUNNING"}]}', "job.history.json", "is not a history file"),
        (
            '{"version": "1", "vertices": ["log", "parse"]}',
            "job.yaml:",
            "of another job, with the vertices log, parse; this one has source, sink",
        ),
        ('{"version": "1",\n"checkpoints": [1]}', "job.history.json:2:", "expected a mapping"),
        (
            '{"version": "1",\n"backtest": {"runs": "three", "simulated": "1 s"}}',
            "job.history.json:2:",
            "expected a whole number",
        ),
        (
            '{"version": "1",\n"residuals":\n{"checkpoints": 1, "unit": "1 ms", "of": {"snk": {}}}}',
            "job.history.json:3:",
            "no vertex 'snk'",
        ),
        ("\x00", "job.history.json:1:1", "is not JSON"),
        ('{"version": ' + "1" * 5000 + "}", "job.history.json", "contains a number with too many digits"),
        ("[" * 100_000, "job.history.json", "is nested too deeply"),
    ],
)
def test_mistakes_are_told_at_their_place(job, content, place, message):
    if content is None:
        history_of(job).unlink()
    else:
        history_of(job).write_text(content)
    with pytest.raises(ScenarioError) as refused:
        load(job)

    assert any(
        str(job.parent / place) in str(problem) and message in str(problem) for problem in refused.value.problems
    ), refused.value


def test_a_folder_is_no_history(job):
    with pytest.raises(ScenarioError, match=r"is a directory; a file was expected"):
        load(job, ["history=."])


def test_sections_stand_in_one_place(job):
    """Which one counts would be a guess."""
    job.write_text(job.read_text() + HISTORY)

    with pytest.raises(
        ScenarioError, match=r"residuals: conflicts with history: job\.history\.json; remove one of the two"
    ):
        load(job)


def test_an_older_file_is_taken_apart_at_any_place():
    """Sections at the end, in the middle, or alone."""
    middle, end = split_history(INLINE, "h.json"), split_history(TINY + RUN + HISTORY, "h.json")

    assert middle.history == end.history
    assert sorted(middle.scenario.splitlines()) == sorted(end.scenario.splitlines())


@pytest.mark.parametrize("checkpoints", [None, SEEN])
def test_both_are_put_together_again(tmp_path, checkpoints):
    """For a folder that is read elsewhere; what others wrote around the line stays."""
    write_scenario_and_history(INLINE, tmp_path / "job.yaml", checkpoints)
    text = inline_history((tmp_path / "job.yaml").read_text(), tmp_path)

    assert loads(INLINE, "job") == loads(text, "job")
    assert [line for line in (TINY + RUN).splitlines() if line not in text.splitlines()] == []
    assert "history:" not in text
    assert json.loads(split_history(INLINE, "h.json").history) == json.loads(split_history(text, "h.json").history) | {
        "about": "what 3 checkpoints of the history took beyond the model"
    }


@pytest.mark.parametrize("text", [TINY + RUN, TINY + "history: none.json\n" + RUN, "history: [", ""])
def test_what_names_no_history_that_can_be_read_stays(tmp_path, text):
    assert text == inline_history(text, tmp_path)
