"""`watch` of a played JobManager: what it says when load, state, settings or the JobManager change, and how it goes on."""

import json
import re
import shutil
import urllib.request
from itertools import pairwise

import pytest

from sim.app.verbs.common import OptionError, Stopped
from sim.app.verbs.watch import watch
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_client import RestError
from sim.jobs.watch import memory
from sim.jobs.watch.memory import Memory, MemoryFileError, read_checkpoints
from sim.results import page
from tests.jobs.watch.conftest import Heard, PlayedFlink
from tests.places import DATA, REST


@pytest.fixture
def drawn():
    """A test that asks for this draws the charts of its page, after each look: that costs as much as the rest of it."""


@pytest.fixture(autouse=True)
def charts(request, monkeypatch):
    """Empty ones, but in the tests that ask for `drawn`."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(page, "to_figure", lambda _drawn: None)
        monkeypatch.setattr(page, "svg", lambda _drawn, _name: "<svg></svg>")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A watch of two polls, with a forecast."""
    fake = PlayedFlink()
    folder = tmp_path_factory.mktemp("watch") / "begun"
    done = watch(fake.url, folder=folder, every="30 s", duration="30 s", sample="0 s", clock=fake.clock)
    fake.server.shutdown()
    fake.server.server_close()
    return done


@pytest.fixture
def folder(begun, played, tmp_path):
    """A copy of it, for this server: a watch of `played` goes on there."""
    played.clock.wait(60)
    return shutil.copytree(begun.folder, tmp_path / "watch")


def test_the_first_looks_make_a_forecast(begun):
    """An import of the job, which can be run, and its history; every checkpoint that Flink lists is a row."""
    (event,) = begun.events

    assert event.kind == "forecast"
    assert 400 < event.data["p50_ms"] < 600
    assert event.text.startswith("forecast: p50 4")
    assert {"job.yaml", "job.history.json", "watch.json", "ckptsim.prom", "index.html"} <= {
        file.name for file in begun.folder.iterdir()
    }


def test_a_job_as_it_was_says_nothing(played, folder):
    """For ten minutes; each checkpoint is a row with its forecast."""
    heard = played.watched(folder, "10 min")
    rows = heard.done.checkpoints

    assert heard.events == []
    assert 11 * 12 <= len(rows) <= 12 * 12
    assert rows["checkpoint"].is_unique
    assert {"within", "without forecast"} <= set(rows["verdict"])
    assert (rows["verdict"] == "beyond").mean() < 0.1
    assert heard.done.verdict.startswith("Checkpoints keep their forecast: p50 4")


def test_load_that_doubles_is_why_checkpoints_leave(played, folder):
    """Said within two minutes, with the time it began and what it was; and when it is over."""
    played.load = lambda s: 2.0 if 100 <= s < 340 else 1.0
    played.slower = lambda s: 12.0 if 100 <= s < 340 else 1.0
    heard = played.watched(folder, "9 min")
    left, again = (next(event for event in heard.events if event.kind == kind) for kind in ("left", "within"))

    assert 100_000 < left.time_ms - played.begun_ms < 220_000
    assert 100_000 <= left.data["since_ms"] - played.begun_ms < 110_000
    assert left.data["why"]["causes"][0]["kind"] == "load"
    assert "Load of 'orders' doubled (596/s -> 1." in left.text
    assert 340_000 < again.time_ms - played.begun_ms < 460_000
    assert again.text.startswith("checkpoints are within the forecast again since ")


def test_without_a_cause_that_is_said(played, folder):
    """Load and state are as they were: only the part that takes longer is named."""
    played.slower = lambda s: 12.0 if s > 120 else 1.0
    (left,) = played.watched(folder, "5 min").of("left")

    assert "Load" not in left
    assert "tate of" not in left
    assert "Of a checkpoint, " in left


def test_each_departure_is_told(played, folder):
    """Also the second one of the same kind."""
    played.slower = lambda s: 4.0 if 100 <= s < 220 or 500 <= s < 620 else 1.0
    heard = played.watched(folder, "14 min", every="60 s")

    assert len(heard.of("left")) == len(heard.of("within")) == 2


def test_counters_that_are_late_make_no_other_load(play, tmp_path):
    """Flink shows at the first looks what it had counted ten seconds before; a load of 596/s stays one."""
    late = play()
    # as they are shown; the job reads 596/s all the time
    late.load = lambda s: 0.6 if s < 30 else 1.4 if s < 60 else 1.0
    late.watched(tmp_path, "60 s")
    late.load = lambda s: 0.6 if s < 30 else 1.4 if s < 60 else 2.0 if s >= 200 else 1.0
    late.slower = lambda s: 12.0 if s >= 200 else 1.0
    (left,) = late.watched(tmp_path, "6 min").of("left")

    assert "Load of 'orders' doubled (596/s -> 1." in left


def test_a_poll_without_new_counters_shows_no_load(played, folder):
    """Flink fetches them at every other poll only, and a poll in between is of no load of 0."""
    played.load = lambda s: 1.0 if s < 90 else 2.0 * (s // 30 % 2)
    played.watched(folder, "5 min")
    state = json.loads((folder / "watch.json").read_text())["state"]
    gauge = re.search(r"ckptsim_source_records_per_second\{.*\} (.*)", (folder / "ckptsim.prom").read_text()).group(1)

    assert len(state["activities"]) < state["counts"]["polls answered"]
    assert 590 < float(gauge) < 602
    assert all(activity["load"]["orders"] > 290 for activity in state["activities"])


def test_checkpoints_beyond_the_limit_are_told_once(played, folder):
    played.slower = lambda s: 8.0 if s > 120 else 1.0
    lines = played.watched(folder, "5 min", limit="3 s").of("limit")

    assert len(lines) == 1
    assert lines[0].startswith("checkpoints are longer than 3 s: p90 of the last 20 is ")


def test_a_jobmanager_that_dies_and_returns(played, folder):
    """Said once each; a request per look meanwhile and a second one at its start; checkpoints are held again afterwards."""
    gone = {}

    def die(_seconds):
        if 120 <= played.passed_s < 300 and not gone:
            gone["requests"] = len(played.requests)
            played.faults["*"] = [503] * 10_000
        if played.passed_s >= 300 and played.faults:
            played.faults.clear()
            gone["asked"] = played.requests[gone["requests"] :]

    played.clock.then = die
    heard = played.watched(folder, "6 min")
    away, again, missed = heard.events

    assert heard.kinds() == ["away", "answers", "missed"]
    assert missed.data["missed"] > 20
    assert "HTTP 503" in away.text
    assert re.fullmatch(r"the JobManager answers again, after (3 min|2\d\d s)", again.text)
    looks = 3 * 60 / 30 + 1  # the last one only if the clock's rounding puts it before the end
    assert looks + 1 >= len(gone["asked"]) >= looks
    assert {"/jobs/overview"} == set(gone["asked"])


def test_a_jobmanager_that_is_slow_is_not_called_away(played, folder, monkeypatch):
    """It answers, and not all that is asked in the time of a look."""

    def late(*_, **__):
        raise RestError("http://jobmanager", "no time is left: 30 s were given for all questions", is_final=True)

    monkeypatch.setattr("sim.app.verbs.watch.fetch", late)
    (event,) = played.watched(folder, "1 min").events

    assert event.kind == "away"
    assert event.text.startswith("the JobManager answers too slowly: no time is left: 30 s")


def test_a_watch_that_is_restarted_goes_on(played, folder):
    """No checkpoint is kept twice or asked for again, and what began before is told after."""
    played.slower = lambda s: 12.0 if s > 60 else 1.0
    first = played.watched(folder, "30 s")
    known = len(first.done.checkpoints)
    played.requests.clear()
    second = played.watched(folder, "5 min")
    rows = second.done.checkpoints

    assert "left" not in first.kinds()
    assert "left" in second.kinds()
    assert second.messages[0].startswith(f"resuming: {folder} has {known} checkpoints; ")
    assert known < len(rows)
    assert rows["checkpoint"].is_unique
    details = [path for path in played.requests if "/details/" in path]
    assert len(details) == len(set(details))


def test_what_changes_about_the_job_is_told_and_not_held_against_the_forecast(played, folder):
    """Other settings, and a rescale: another forecast is made, of checkpoints that were taken since."""
    config = played.answers[f"{played.first}/checkpoints/config"]
    played.clock.wait(60)
    played.watched(folder, "1 s")
    config["min_pause"] = 2000
    for vertex in played.about["vertices"][:1]:
        vertex["parallelism"] = 1
    played.slower = lambda _s: 12.0
    heard = played.watched(folder, "3 min")
    rows = heard.done.checkpoints

    assert any(text.startswith("settings changed: min_pause 1000 -> 2000") for text in heard.of("changed"))
    assert any(text.startswith("rescaled: ") and " 2 -> 1" in text for text in heard.of("changed"))
    assert heard.of("forecast")[0].startswith("the forecast was of the job before that")
    assert "left" not in heard.kinds()
    assert "of other settings" in set(rows["verdict"])


def test_a_redeployed_job_has_its_forecast_with_its_sixth_checkpoint(played, tmp_path):
    """Also a minute after the first forecast, or after one that could not be made."""
    config = played.answers[f"{played.first}/checkpoints/config"]
    played.watched(tmp_path / "watch", "30 s")
    config["min_pause"] = 2000
    heard = played.watched(tmp_path / "watch", "2 min")
    promised, made = [event for event in heard.events if event.kind == "forecast"]

    assert promised.text.endswith("a new one is made of its next 6 checkpoints")
    assert made.text.startswith("forecast: p50 ")
    assert made.time_ms - promised.time_ms <= 6 * played.interval_ms + 2 * 30_000


@pytest.mark.parametrize("field", ["trigger_timestamp", "state_size", "id"])
def test_a_checkpoint_with_impossible_numbers_does_not_end_the_watch(played, folder, monkeypatch, field):
    """A trigger in the year 10000, 2^70 bytes: later checkpoints are judged all the same, and a restart reads the folder."""
    value = {"trigger_timestamp": 253_402_300_800_000, "state_size": 2**70, "id": 2**64}[field]
    wrong = played.numbers()[-1] + 3
    listed, details = played.listed, played.details

    def impossible(answer, number):
        return answer | ({field: value} if number == wrong and answer else {})

    monkeypatch.setattr(played, "listed", lambda number: impossible(listed(number), number))
    monkeypatch.setattr(
        played, "details", lambda number, rest: impossible(details(number, rest), number if not rest else -1)
    )
    heard = played.watched(folder, "2 min")
    rows = heard.done.checkpoints
    again = played.watched(folder, "1 min")

    assert rows["checkpoint"].max() > wrong + 5
    assert len(again.done.checkpoints) > len(rows)
    assert wrong not in set(rows["checkpoint"])


def test_rows_are_appended_to_the_file_of_their_day(played, folder):
    """What was written stays as it is."""
    written = []

    def read(_seconds):
        written.append("".join(file.read_text() for file in sorted(folder.glob("checkpoints-*.jsonl"))))

    played.clock.then = read
    played.watched(folder, "5 min")
    before = [*folder.glob("checkpoints-*.jsonl")]

    assert all(later.startswith(earlier) and later > earlier for earlier, later in pairwise(written))
    played.clock.wait(86_400)
    played.watched(folder, "1 s")
    assert len([*folder.glob("checkpoints-*.jsonl")]) == len(before) + 1


def test_rows_outlive_a_kill_and_a_full_disk(played, folder, monkeypatch):
    """A checkpoint whose row was written before the state of the watch is seen again, and is one row; a torn line is no row."""
    killed, state = Memory(folder), (folder / "watch.json").read_text()
    rows = read_checkpoints(folder)
    killed.open()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "append_lines", lambda *_: (folder / "no" / "file").touch())
        with pytest.raises(OSError, match="No such file"):
            killed.save(played.clock.now_ms(), [rows[-1] | {"checkpoint": 1}], {})
    with max(folder.glob("checkpoints-*.jsonl")).open("a") as torn:
        torn.write('{"trigger": "2026')
    killed.save(played.clock.now_ms(), [rows[-1]], {})
    (folder / "watch.json").write_text(state)

    checkpoints = played.watched(folder, "1 s").done.checkpoints

    assert {1, *(row["checkpoint"] for row in rows)} <= set(checkpoints["checkpoint"])
    assert checkpoints["checkpoint"].is_unique
    assert str(checkpoints["trigger"].dtype) == "datetime64[ns, UTC]"


def test_a_restart_is_told_and_the_checkpoints_after_it_are_not_held(played, folder):
    """Three of them: the job catches up."""
    played.watched(folder, "1 s")
    played.restored, played.failures_ms = 1, [played.clock.now_ms() + 10_000]
    at = played.passed_s
    played.slower = lambda s: 20.0 if at < s < at + 15 else 1.0
    played.fails = {played.numbers()[-1] + 1: "Checkpoint expired before completing."}
    heard = played.watched(folder, "3 min")
    rows = heard.done.checkpoints

    assert heard.of("restarted") == ["the job began again: a failure, or a restart of the JobManager"]
    assert (rows["verdict"] == "after a restart").sum() == 3
    assert any("failed after" in text and "expired" in text for text in heard.of("failed"))
    assert "left" not in heard.kinds()


def test_failures_in_a_row_are_told_as_one_at_ever_longer_ones(played, folder):
    """Also by a watch that resumes: the first, the second, the fourth, the eighth, and when they end."""
    played.watched(folder, "1 s")
    first = played.numbers()[-1] + 3
    played.fails = dict.fromkeys(range(first, first + 9), "Asynchronous task checkpoint failed.")
    interval_s = played.interval_ms // 1000
    told = [*played.watched(folder, f"{6 * interval_s} s").of("failed")]
    told += played.watched(folder, f"{12 * interval_s} s").of("failed")
    runs = [text for text in told if text.startswith("no checkpoint completes since the one of ")]

    assert told[0].startswith(f"checkpoint {first} failed after")
    assert [text.split(": ")[1].split(" in a row")[0] for text in runs] == ["2", "4", "8"]
    assert f"in a row failed (1000 are tolerated), {first + 1} the last after" in runs[0]
    assert told[-1] == "checkpoints complete again, after 9 failed in a row"
    assert len(told) == 5


def test_ctrl_c_keeps_all(played, folder):
    """The folder is complete after each look."""

    def interrupt(_seconds):
        raise KeyboardInterrupt

    played.clock.then = interrupt
    with pytest.raises(Stopped, match="run the same command to resume"):
        played.watched(folder, "1 h")
    played.clock.then = lambda _seconds: None

    assert not list(folder.glob(".*.tmp"))
    assert json.loads((folder / "watch.json").read_text())["version"] == 3
    assert played.watched(folder, "1 min").events == []


def test_a_new_folder_without_an_answer_is_an_error(played, tmp_path):
    """A wrong address is told at once; a bad option, too; and a folder that is not ours."""
    played.faults["*"] = [404] * 100
    with pytest.raises(RestError):
        played.watched(tmp_path / "new", "1 min")
    for options, why in (
        ({"every": "0 s"}, "1 s or more"),
        ({"limit": "0 s"}, "more than 0 s"),
        ({"listen": "no"}, "HOST:PORT"),
    ):
        with pytest.raises(OptionError, match=why):
            played.watched(tmp_path / "new", "1 min", **options)
    (tmp_path / "new" / "watch.json").write_text("{")
    with pytest.raises(MemoryFileError, match="is damaged"):
        played.watched(tmp_path / "new", "1 min")


@pytest.mark.usefixtures("drawn")
def test_metrics_and_page_are_served(played, folder):
    """While it watches; nothing else is."""
    answers = {}

    heard = Heard()

    def scrape(_seconds):
        address = heard.messages[-1].removeprefix("serving ").removesuffix("/metrics")
        for path in ("/metrics", "/", "/watch.json"):
            try:
                with urllib.request.urlopen(address + path, timeout=5) as answer:
                    answers[path] = (answer.status, answer.headers["Content-Type"], answer.read().decode())
            except urllib.error.HTTPError as error:
                answers[path] = (error.code, "", "")

    played.clock.then = scrape
    played.watched(folder, "30 s", listen="0", heard=heard)

    assert answers["/metrics"][:2] == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert (folder / "ckptsim.prom").read_text().splitlines()[-1] == answers["/metrics"][2].splitlines()[-1] == "# EOF"
    assert "<h1>Checkpoints of Flink Streaming Job, watched</h1>" in answers["/"][2]
    assert answers["/watch.json"][0] == 404


def test_a_saved_job_is_replayed(tmp_path):
    """The second half of its checkpoints is held to a forecast made of the first; times are those of the job."""
    saved = DATA / "users-jobs/R6-grow-aligned.zip"
    done = watch(str(saved), folder=tmp_path / "watch", limit="300 ms")
    rows = read_checkpoints(tmp_path / "watch")

    assert [event.kind for event in done.events].count("forecast") == 1
    assert {event.line[:10] for event in done.events} == {"2026-11-22"}
    assert [row["verdict"] for row in rows[:9]].count("without forecast") == 8
    assert {row["verdict"] for row in rows[9:]} == {"within", "beyond"}
    assert done.verdict.startswith(
        "Checkpoints are longer than their limit, 300 ms: p90 613 ms. It is not sure yet whether checkpoints keep their "
        "forecast"
    )
    assert [event.kind for event in done.events].count(
        "limit"
    ) == 1  # a forecast does not change whether they exceed it
    with pytest.raises(OptionError, match="name another folder"):
        watch(str(saved), folder=tmp_path / "watch")
    with pytest.raises(RecordingError, match="5 checkpoints; a replay needs 8"):
        watch(str(REST / "archive.json.gz"), folder=tmp_path / "few")
    with pytest.raises(RecordingError, match="a log; watch replays"):
        watch(str(REST / "jobmanager.log"), folder=tmp_path / "log")
