"""What people try first and what does not work so: the message says what does."""

import pytest
from typer.testing import CliRunner

import sim
from sim.app.cli import app
from sim.jobs.source.rest_client import Client, RestError

SCENARIO = """\
# How long do checkpoints take?
version: 1
job:
  orders: {source: {rate: 1k/s, record: 1 kB}}
  sink: {input: {orders: hash}}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


@pytest.fixture
def runner():
    return CliRunner()


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.yaml").write_text(SCENARIO)
    return tmp_path / "job.yaml"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("task-managers", "each slot holds a subtask of every vertex"),
        ("taskmanagers", "each slot holds a subtask of every vertex"),
        ("nodes", "write hosts"),
        ("task-slots", "write slots"),
    ],
)
def test_how_many_machines_is_said_otherwise(key, message):
    with pytest.raises(sim.ScenarioError, match=message):
        sim.loads(SCENARIO + f"cluster: {{{key}: 4}}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "x.yaml", "--spark"], "--master 'local[*]'"),
        (["compare", "a"], "ckptsim diff A B"),
        (["run", "a.yaml", "--output", "x"], "--out"),
    ],
)
def test_another_name_of_a_verb_or_an_option(runner, arguments, message):
    result = runner.invoke(app, arguments)

    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_a_mistake_that_has_no_other_name_says_no_more(runner):
    assert "write" not in runner.invoke(app, ["run", "--nothing-like-it"]).output


def test_a_dead_proxy_is_named(monkeypatch):
    """Its password is not."""
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    client = Client("http://jobmanager.example:8081", pause=lambda _: None)

    with pytest.raises(RestError, match=r"by the proxy 127\.0\.0\.1:9 of http_proxy") as raised:
        client.get("/overview", attempts=1)
    assert "secret" not in str(raised.value)


def test_no_proxy_is_named_where_there_is_none(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(RestError) as raised:
        Client("http://127.0.0.1:9", pause=lambda _: None).get("/overview", attempts=1)
    assert "proxy" not in str(raised.value)


@pytest.mark.parametrize("content", [b"PK\3\4" + bytes(range(128, 256)) * 9, bytes(range(128, 256)) * 9])
@pytest.mark.parametrize("verb", ["import", "explain"])
def test_a_damaged_zip_is_no_log(runner, tmp_path, verb, content):
    (tmp_path / "saved.zip").write_bytes(content)
    result = runner.invoke(app, [verb, str(tmp_path / "saved.zip")])

    assert result.exit_code == 3
    assert "is not a valid ZIP file" in " ".join(result.output.split())


# ---------------------------------------------------------------------------------------------- from Python


def test_a_folder_of_results_is_no_scenario(job, tmp_path):
    sim.load(job).run(folder=tmp_path / "results")

    with pytest.raises(sim.ScenarioError, match=r"is a folder; a scenario file \(\.yaml\) was expected"):
        sim.load(tmp_path / "results")
