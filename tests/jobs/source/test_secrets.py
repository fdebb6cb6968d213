"""What is sent to a colleague holds no secrets: only fields that are read are saved, and texts in them are masked."""

import copy
import json
import time

import pytest

from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved, save
from sim.model.text import HIDDEN, masked_text
from tests.places import USERS

SECRET = "hunter2"


def plant(document):
    """Add the secret to every object of an answer, under a name that tells nothing, and return in how many."""
    if isinstance(document, list):
        return sum(plant(item) for item in document)
    if not isinstance(document, dict):
        return 0
    count = 1 + sum(plant(item) for item in list(document.values()))
    document["about"] = [{"x": SECRET}, SECRET]
    return count


PLACES = {
    "/jobmanager/config": lambda a: a.append({"key": "env.java.opts.all", "value": f"-Dx={SECRET}"}),
    "/config": lambda a: a.update({"flink-revision": SECRET}),
    "/jobs/overview": lambda a: a.update({"jobs": [{"name": SECRET}]}),
    "/jobs/:id": lambda a: a.update(name=f"job password={SECRET}"),
    "/jobs/:id/config": lambda a: a["execution-config"].update({"user-config": {"db": SECRET}}),
    "/jobs/:id/plan": lambda a: a["plan"]["nodes"][0].update(description=f"url 'jdbc:x://me:{SECRET}@db/x'"),
    "/jobs/:id/exceptions": lambda a: a.update({"root-exception": f"at {SECRET}", "all-exceptions": [SECRET]}),
    "/jobs/:id/checkpoints": lambda a: a["history"][0].update(external_path=f"s3://{SECRET}"),
    "/jobs/:id/checkpoints/config": lambda a: a.update(externalization={"dir": SECRET}),
    "/taskmanagers": lambda a: a["taskmanagers"][0].update(memoryConfiguration=SECRET),
    "/jobs/:id/other": lambda a: a.update(x=SECRET),
}


@pytest.fixture
def planted():
    """A snapshot with the secret in each place, and in each object of each answer."""
    snapshot = copy.deepcopy(read_saved(USERS / "R4-rocksdb-aligned.zip"))
    changes = {path.replace(":id", snapshot.job): change for path, change in PLACES.items()}
    answers = {path: {} for path in changes} | snapshot.answers
    count = sum(map(plant, answers.values()))
    for path, change in changes.items():
        change(answers[path])
    for sample in snapshot.samples.values():
        for metrics in sample.values():
            metrics += [{"id": SECRET, "value": "1"}, {"id": "0.numRecordsIn", "value": SECRET}]
    assert count > 20
    return RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples, snapshot.missing)


def test_what_nobody_reads_is_not_saved(planted, tmp_path):
    save(planted, tmp_path / "saved")

    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET in file.read_text()] == []
    assert read_saved(tmp_path / "saved").of_job("/plan")["plan"]["nodes"]


def test_an_answer_that_is_not_one_of_flink_is_missing(planted, tmp_path):
    path = f"/jobs/{planted.job}/checkpoints/config"
    planted.answers[path]["interval"] = f"password={SECRET}"
    save(planted, tmp_path / "saved")

    saved = read_saved(tmp_path / "saved")
    assert "interval: Input should be a valid integer" in saved.missing[path]
    assert SECRET not in json.dumps(dict(saved.missing))


@pytest.mark.parametrize(
    "text",
    [
        "-Dfoo=1 -Djavax.net.ssl.keyStorePassword=hunter2 -Xmx1g",
        "--db-password hunter2 --rate 5",
        "-Ddb.password='hunter2'",
        'plain.PlainLoginModule required username="me" password="a b hunter2";',
        'PlainLoginModule required password=\\"hunter2\\";',
        'required password="a\\"hunter2";',
        'password="hunter2 and never ends',
        "jdbc:postgresql://me:p@ss/hunter2@db:5432/x",
        "https://p@ss-hunter2@github.com/x",
        "jdbc:mysql://db/x?user=me&password=hun,ter2-hunter2&x=1",
        "CREATE TABLE t WITH ('password' = 'it''s hunter2', 'connector' = 'jdbc')",
        "CREATE USER me PASSWORD 'hunter2'",
        '{\\"api_key\\": \\"hunter2\\"}',
        "secret => hunter2",
        "Authorization: Bearer hunter2hunter2",
        "curl -H 'Basic hunter2'",
        "AccountName=me;AccountKey=hunter2==;EndpointSuffix=x",
        "password%3Dhunter2",
        "password\\u003dhunter2",
        "java.io.IOException: Login failed, token=hunter2\n\tat x",
        "es.auth:hunter2",
        "--es.auth hunter2",
    ],
)
def test_secrets_inside_of_texts(text):
    masked = masked_text(text)

    assert SECRET not in masked
    assert HIDDEN in masked
    assert masked == masked_text(masked)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("bypass: on", "bypass: on"),
        (
            "Join(where=[(token = other)], select=[id]) -> Sink",
            f"Join(where=[(token = {HIDDEN})], select=[id]) -> Sink",
        ),
        ("pekko.tcp://flink@host:6123/user/rpc", "pekko.tcp://flink@host:6123/user/rpc"),
        ("hdfs://nn:8020/user/me", "hdfs://nn:8020/user/me"),
        ("Tokenizer: split -> Sink: out", f"Tokenizer: {HIDDEN} -> Sink: out"),
        # half an address does not show that it begins with a password
        ("x " * 49_995 + "postgresql://me:hunter2@db/x", "x " * 49_995 + "..."),
    ],
)
def test_what_stays(text, masked):
    """Parts of addresses next to a secret, the operators of a chain."""
    assert masked == masked_text(text)


@pytest.mark.parametrize(
    "part",
    ["password", "a://", "-a-", "https://a", 'password="\\', "\\", "//a:", "password=[", "token=)", "''", "pass "],
)
def test_no_text_takes_long(part):
    """Whatever it repeats."""
    begun = time.process_time()
    masked_text(part * (10**6 // len(part)))
    assert time.process_time() - begun < 1
