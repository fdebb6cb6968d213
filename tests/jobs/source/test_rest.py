"""A live job is asked for all that is known of it, whatever this Flink knows, and only the job that is meant."""

import itertools
import re

import pytest

from sim.jobs.history.reading import history_of
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.reading import to_recording
from sim.jobs.source import fetching
from sim.jobs.source.fetching import NoJobError, fetch
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import CPU_TIME, PlanInput, is_id, is_path, operators, parsed, short_names
from sim.jobs.source.rest_client import Client, RestError
from sim.jobs.source.rest_job import RestJob


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A clock that is two seconds on whenever somebody waits: a window of 60 s takes no time."""
    seconds = itertools.count()
    monkeypatch.setattr(fetching, "monotonic", lambda: next(seconds) * 2.0)


@pytest.fixture
def ask():
    def fetched(fake, job=None, *, sample_s=30.0, **options):
        return fetch(fake.url, job, sample_s=sample_s, client=Client(fake.url, pause=lambda _: None), **options)

    return fetched


def refusal(ask, fake, *arguments, **options):
    with pytest.raises(RestError) as caught:
        ask(fake, *arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def overview(fake, *jobs):
    fake.answers["/jobs/overview"] = {"jobs": [{"jid": jid, "name": name, "state": state} for jid, name, state in jobs]}


def test_everything_is_asked_and_kept(fake_flink, ask):
    """The same answers under the same paths, and the metrics of each sample."""
    fake = fake_flink()
    seen = []
    snapshot = ask(fake, watch=seen.append)

    unasked = {"/jobs/overview"}
    assert {path for path in fake.answers if "vertices" in path or "checkpoints" in path} - unasked <= set(
        snapshot.answers
    )
    # whose clock goes on
    kept = {path: answer for path, answer in snapshot.answers.items() if path != f"/jobs/{fake.job}"}
    assert kept == {path: fake.answers[path] for path in kept}
    assert (fake.url, fake.job) == (snapshot.source, snapshot.job)
    assert len(snapshot.samples) == len(seen) > 5
    assert seen == sorted(seen)
    assert seen[-1] == 30
    assert {4} == {len(to_recording(snapshot).checkpoints.list)}


def test_requests_are_short_enough(fake_flink, ask, monkeypatch):
    """Flink's server refuses a request line above 4096 bytes: metrics of many subtasks are asked for in several."""
    monkeypatch.setattr(fetching, "MAX_LINE_LENGTH", 300)
    fake = fake_flink()
    snapshot = ask(fake)

    assert max(map(len, fake.requests)) < 300
    assert RestJob(snapshot).flows["sink"].total("records_in") > 0


def test_a_flink_that_knows_less(fake_flink, ask):
    """Older versions lack some answers; one that a proxy forbids is asked for in the scenario."""
    fake = fake_flink()
    for path in list(fake.answers):
        if path.endswith(("jobmanager/config", "/config")) and path != "/config":
            del fake.answers[path]
    inference = infer_scenario(ask(fake))
    assert "How often is a checkpoint taken?" in inference.unknown
    fake.faults["/taskmanagers"] = [403]
    snapshot = ask(fake)

    assert snapshot.missing == {"/taskmanagers": "HTTP 403: access denied"}
    assert "What is the response to GET /taskmanagers?" in infer_scenario(snapshot).unknown


def test_garbage_collections_of_its_task_managers(fake_flink, ask):
    """Asked for by the ids that the job's subtasks have; an id that is no part of a path is not."""
    fake = fake_flink()
    details = [
        answer for path, answer in fake.answers.items() if re.fullmatch("/jobs/[0-9a-f]+/vertices/[0-9a-f]+", path)
    ]
    for number, answer in enumerate(details):
        for subtask in answer["subtasks"]:
            subtask["taskmanager-id"] = "../config" if number else "10.0.0.1:6122-a1"
    fake.answers["/taskmanagers/10.0.0.1:6122-a1"] = {
        "metrics": {"garbageCollectors": [{"name": "G1_Old_Generation", "count": 3, "time": 70}]}
    }
    snapshot = ask(fake)

    assert details
    assert [path for path in snapshot.answers if path.startswith("/taskmanagers/")] == [
        "/taskmanagers/10.0.0.1:6122-a1"
    ]
    assert {name: (garbage.full, garbage.full_ms) for name, garbage in history_of(snapshot).garbage.items()} == {
        "10.0.0.1:6122-a1": (3, 70)
    }


def test_processor_time_of_task_managers_is_sampled(fake_flink, ask):
    """It stands beside the metrics of vertices, and an id that is no part of a path is not asked for."""
    fake = fake_flink()
    fake.answers["/taskmanagers"] = {"taskmanagers": [{"id": "10.0.0.1:6122-a1"}, {"id": "../config"}]}
    for number, sample in enumerate(fake.samples):
        sample["/taskmanagers/10.0.0.1:6122-a1/metrics"] = [{"id": CPU_TIME, "value": str(number * 10**9)}]
    snapshot = ask(fake)
    path = "/taskmanagers/10.0.0.1:6122-a1/metrics"

    assert all(path in sample for sample in snapshot.samples.values())
    assert {path} == {
        path for sample in snapshot.samples.values() for path in sample if path.startswith("/taskmanagers")
    }
    assert [f"{path}?get={CPU_TIME}"] == sorted({request for request in fake.requests if request.startswith(path)})


def test_a_long_window_is_not_cut_short(fake_flink, monkeypatch):
    """Questions may take ten minutes more than the sampling, unless somebody says otherwise."""
    times = []

    class Watched(Client):
        def __init__(self, *arguments, total_s, **options):
            times.append(total_s)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(fetching, "Client", Watched)
    for options in ({"sample_s": 0}, {"sample_s": 0, "total_s": 7}):
        fetch(fake_flink().url, **options)
    with pytest.raises(RestError):
        fetch("http://127.0.0.1:1", sample_s=3600, total_s=None, job="x")

    assert times == [600, 7, 4200]


def test_the_job_that_is_meant(fake_flink, ask):
    """The only one that runs, or one by the first characters of its id."""
    fake = fake_flink()
    other = "f" * 32
    overview(fake, (fake.job, "orders", "RUNNING"), (other, "old", "FINISHED"))
    assert fake.job == ask(fake, sample_s=0).job
    overview(fake, (fake.job, "orders", "RUNNING"), (other, "bills", "RESTARTING"))
    assert fake.job == ask(fake, fake.job[:4].upper(), sample_s=0).job

    assert (
        f"several jobs run, choose one with --job: {fake.job} (orders, RUNNING), {other} (bills, RESTARTING)"
        in refusal(ask, fake)
    )
    assert f"has no job 'abc'; running: {fake.job} (orders, RUNNING), {other}" in refusal(ask, fake, "abc")
    overview(fake, (fake.job, "orders", "FINISHED"))
    assert "no job is running; --job ID imports what is known of one that ended" in refusal(ask, fake)
    overview(fake)
    assert "there is no job" in refusal(ask, fake)


def test_a_job_that_ends_meanwhile_ends_the_window(fake_flink, ask):
    """What was sampled before counts."""
    fake = fake_flink()
    job = fake.answers[f"/jobs/{fake.job}"]

    def over(_):
        fake.answers[f"/jobs/{fake.job}"] = job | {"state": "FINISHED"}

    assert len(ask(fake, watch=over).samples) == 2


def test_a_vertex_whose_metrics_vanish(fake_flink, ask):
    """While a job restarts, its tasks have no metrics; other trouble is told, and the rest is kept."""
    fake = fake_flink()
    path = next(iter(fake.samples[0]))
    fake.faults[path] = [None, None, 404]
    assert len(ask(fake).samples) > 3
    fake.faults[path] = [None, None, 401]
    snapshot = ask(fake)

    assert len(snapshot.samples) > 3
    assert [why[:33] for why in snapshot.missing.values()] == ["HTTP 401: authentication required"]


@pytest.mark.parametrize("answer", [{}, [], "yes", {"version": 2}])
def test_what_is_not_flink(fake_flink, ask, answer):
    """Some other server that answers in JSON."""
    fake = fake_flink()
    fake.answers["/config"] = answer

    assert "names no version of Flink: is this Flink's REST address?" in refusal(ask, fake)


def test_new_checkpoints_are_read_before_they_leave_the_history(fake_flink, ask):
    """The history is short: whatever completes during the window is asked for at once."""
    fake = fake_flink()
    path = f"/jobs/{fake.job}/checkpoints"
    history = fake.answers[path]["history"]
    newest = history[0] | {"status": "COMPLETED"}

    def another(passed):
        number = 1000 + int(passed)
        fake.answers[path] = fake.answers[path] | {"history": [newest | {"id": number}]}
        details = fake.answers[f"{path}/details/{history[-1]['id']}"]
        fake.answers[f"{path}/details/{number}"] = details | {"id": number}

    snapshot = ask(fake, watch=another)

    assert len(snapshot.samples) - 1 <= sum("/details/10" in name for name in snapshot.answers)


@pytest.mark.parametrize("path", ["/config", "/jobs/overview", "/jobs/:id"])
@pytest.mark.parametrize("fault", [500, 403, "cut"])
def test_an_essential_answer_that_fails(fake_flink, ask, path, fault):
    """All others are asked for; the version and the list of jobs are not needed for a scenario."""
    fake = fake_flink()
    everything = ask(fake, sample_s=0)
    fake.answers["/jobs"] = {"jobs": [{"id": fake.job, "status": "RUNNING"}]}
    place = path.replace(":id", fake.job)
    fake.faults[place] = [fault] * 99
    snapshot = ask(fake, sample_s=0)

    assert [place] == list(snapshot.missing)
    assert everything.answers.keys() - {place} == snapshot.answers.keys() - {"/jobs"}
    if path == "/jobs/:id":
        with pytest.raises(RecordingError, match=rf"the answer to {place} is missing \(.+\)$"):
            infer_scenario(snapshot)
    else:
        complete, partial = (infer_scenario(own).document for own in (everything, snapshot))
        if path == "/config":
            del complete["cluster"]["version"]  # it is told there alone
        assert partial == complete


def test_nobody_tells_what_jobs_there_are(fake_flink, ask):
    """Whoever gives the id of the job does not need to be told."""
    fake = fake_flink()
    fake.faults["/jobs/overview"] = [500] * 99
    with pytest.raises(NoJobError, match="/jobs/overview: HTTP 500") as caught:
        ask(fake)

    assert {"/config", "/jobmanager/config"} <= caught.value.snapshot.answers.keys()
    assert list(caught.value.snapshot.missing) == ["/jobs/overview"]
    assert fake.job == ask(fake, fake.job, sample_s=0).job


def test_a_server_that_answers_nothing(fake_flink, ask):
    """The first error is told; it is not asked everything."""
    fake = fake_flink()
    fake.faults["*"] = [503] * 99

    assert "/config: HTTP 503" in refusal(ask, fake)
    assert len(fake.requests) == 3


def test_rescales_tell_how_long_a_restart_takes(fake_flink, ask):
    """Of those that completed, without waits for slots and without failures, whose restart has a delay (Flink 2.3)."""
    fake = fake_flink()
    begin = f"/jobs/{fake.job}/rescales"
    rows = [
        ("UPDATE_REQUIREMENT", "COMPLETED", 300, 40),
        ("NEW_RESOURCE_AVAILABLE", "COMPLETED", 500, 60),
        ("NEW_RESOURCE_AVAILABLE", "COMPLETED", 500, 80),
        ("RECOVERABLE_FAILOVER", "COMPLETED", 9000, 50),
        ("UPDATE_REQUIREMENT", "IGNORED", 7000, 70),
        ("UPDATE_REQUIREMENT", None, 8000, None),
    ]
    history = []
    for number, (cause, terminal, restarting, creating) in enumerate(rows):
        row = {"rescaleUuid": f"{number:032x}", "triggerCause": cause, "terminalState": terminal}
        spans = ("Executing", 60_000), ("Restarting", restarting), ("WaitingForResources", 4000)
        spans = *spans, ("CreatingExecutionGraph", creating)
        states = [{"state": state, "durationInMillis": took} for state, took in spans]
        history.append(row | {"schedulerStates": None})
        fake.answers[f"{begin}/details/{row['rescaleUuid']}"] = row | {"schedulerStates": states}
    fake.answers[f"{begin}/history"] = history
    keeps = {"key": "web.adaptive-scheduler.rescale-history.size", "value": "10"}

    assert not [path for path in ask(fake).answers if "rescales" in path], "no history is configured"
    fake.answers["/jobmanager/config"] = [*fake.answers["/jobmanager/config"], keeps]
    snapshot = ask(fake)
    assert sum("rescales/details" in path for path in snapshot.answers) == 4
    text = infer_scenario(snapshot).text
    assert (
        "restart: 560 ms  # Restarting and CreatingExecutionGraph in /jobs/:id/rescales/details; median over 3 rescales"
        in text
    )


# ---- Vertices get names a person can write.


@pytest.mark.parametrize(
    ("vertex", "chain"),
    [
        ("map", ["map"]),
        ("Source: src -> Map -> Sink: out", ["Source: src", "Map", "Sink: out"]),
        ("Source: src -> (Map, Filter -> Flat Map)", ["Source: src", "Map", "Filter", "Flat Map"]),
        ("a -> (b -> (c, d), e)", ["a", "b", "c", "d", "e"]),
        ("Window(Tumbling(5000), x -> y, z) -> Map", ["Window(Tumbling(5000), x -> y, z)", "Map"]),
        ("Calc[2](select=[a, f(b) -> c]) -> Sink[3]", ["Calc[2](select=[a, f(b) -> c])", "Sink[3]"]),
        ("unbalanced ) -> (", ["unbalanced )"]),
        ("", []),
    ],
)
def test_a_chain_is_taken_apart(vertex, chain):
    """At the arrows and commas Flink puts between operators, not at those inside of one."""
    assert chain == operators(vertex)


def test_names_are_unique_and_never_empty():
    """Long chains are cut, whatever is no word is called vertex."""
    long = " -> ".join(f"operator {i}" for i in range(20))

    names = short_names(["Map", "map", long, long, "日本", "->"])

    assert names == ["map", "map-2", "operator-0+19", "operator-0+19-2", "vertex", "vertex-2"]


# ---- What can be a path of Flink's REST API, and what would be something else on a disk.


JOB = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "text",
    ["", "x" * 32, JOB.upper(), JOB[1:], JOB + "0", f"{JOB}\n", "../../../../../../etc/passwd0000", 7, None, [JOB]],
)
def test_what_is_no_id(text):
    """Neither in a path nor in an answer."""
    assert is_id(JOB)
    assert not is_id(text)
    assert parsed(PlanInput, {"id": JOB}, "x", "/plan").id == JOB
    with pytest.raises(RecordingError, match="id"):
        parsed(PlanInput, {"id": text}, "x", "/plan")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "config",
        "//config",
        "/jobs/x",
        f"/jobs/{JOB}/",
        f"/jobs/{JOB}/..",
        f"/jobs/{JOB}/a b",
        "/.git",
        "/a\x00",
        "/a\nb",
        "/" + "a" * 101,
        "/a" * 13,
    ],
)
def test_what_is_no_path(path):
    assert not is_path(path)
