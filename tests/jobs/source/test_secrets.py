"""What is sent to a colleague holds no secrets, however they are written; everything else stays."""

import time

import pytest

from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved, save
from sim.jobs.source.secrets import HIDDEN, is_secret, masked, masked_text

JOB = "a" * 32


def hidden(answer):
    """(what is left, how many were replaced) of one answer."""
    snapshot, count = masked(RestSnapshot("x", JOB, {"/x": answer}))
    return snapshot.answers["/x"], count


@pytest.mark.parametrize(
    "key",
    [
        "s3.secret-key",
        "s3.access-key",
        "fs.azure.account.key.me.blob.core.windows.net",
        "security.ssl.rest.key-password",
        "metrics.reporter.x.apikey",
        "rest.api-key",
        "auth-params",
        "service-key",
        "x.token",
        "basic-auth",
        "java.security.auth.login.jaas.config",
        "http-headers",
        "env.java.opts",
        "env.java.opts.all",
        "containerized.taskmanager.env.AWS_SECRET_ACCESS_KEY",
        "DB_PASSWD",
        "my.Credential",
        "sharedKey",
        "connectionString",
        "ssl.private.key",
    ],
)
def test_options_of_a_cluster(key):
    """Flink's own list of keys, and more."""
    assert is_secret(key)
    assert ([{"key": key, "value": HIDDEN}], 1) == hidden([{"key": key, "value": "hunter2"}])
    assert ({key: HIDDEN}, 1) == hidden({key: ["hunter2"]})


@pytest.mark.parametrize(
    "text",
    [
        "-Dfoo=1 -Djavax.net.ssl.keyStorePassword=hunter2 -Xmx1g",
        "--db-password hunter2 --rate 5",
        "-Ddb.password='hunter2'",
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="hunter2";',
        'PlainLoginModule required password=\\"hunter2\\";',
        'required password="a\\"hunter2";',
        'password="hunter2 and never ends',
        "jdbc:postgresql://me:hunter2@db:5432/x",
        "https://hunter2@github.com/x",
        "jdbc:postgresql://me:p@ss-hunter2@db:5432/x",
        "https://p@ss-hunter2@github.com/x",
        "jdbc:mysql://db/x?user=me&password=hunter2&x=1",
        "https://x.blob.core.windows.net/c?sv=1&sig=hunter2%3D",
        "CREATE TABLE t WITH ('connector' = 'jdbc', 'password' = 'hunter2')",
        "CREATE TABLE t WITH ('password' = 'it''s hunter2', 'connector' = 'jdbc')",
        '{"api_key": "hunter2"}',
        '{\\"api_key\\": \\"hunter2\\"}',
        "secret => hunter2",
        "CREATE USER me PASSWORD 'hunter2'",
        "Authorization: Bearer hunter2hunter2",
        "Authorization: Basic aHVudGVyMmh1bnRlcjI=hunter2",
        "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=hunter2==;EndpointSuffix=x",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
        "java.io.IOException: Login failed, token=hunter2\n\tat x",
        "es.auth:hunter2",
        "--es.auth hunter2",
    ],
)
def test_secrets_inside_of_texts(text):
    """Options of a JVM, JAAS, addresses, SQL, JSON in JSON, headers, stack traces."""
    left, count = hidden({"value": text})

    assert "hunter2" not in left["value"]
    assert HIDDEN in left["value"]
    assert count >= 1


def test_a_secret_is_counted_once_and_hidden_once():
    answer = {"user-config": {"password": "hunter2", "rate": "5"}, "x": "password=hunter2"}
    left, count = hidden(answer)

    assert count == 2
    assert (left, 0) == hidden(left)


def test_what_is_saved_is_masked(tmp_path):
    snapshot = RestSnapshot("x", JOB, {f"/jobs/{JOB}": {"password": "hunter2"}})

    assert save(snapshot, tmp_path / "masked") == 1
    assert read_saved(tmp_path / "masked").of_job() == {"password": HIDDEN}


def test_what_is_cut_off_ends_before_a_word():
    """Half an address does not show that it begins with a password."""
    assert masked_text("x " * 49_995 + "postgresql://me:hunter2@db/x") == "x " * 49_995 + "..."
    assert masked_text("postgresql://me:" + "x" * 10**6) == "..."


def test_no_text_takes_long():
    """Whatever it repeats."""
    texts = [
        "password",
        "a://",
        "-a-",
        "eyJ",
        "https://a",
        'password="\\',
        "password='",
        "-----BEGIN PRIVATE KEY-----",
        "\\",
        "password=\\",
        "a://b:",
        "<name>token",
        "password=[",
        "token=)",
        "%2f%2f@",
        "mysql -p",
        "key='token' value=",
        "-p ",
        "-u a:",
        "login a password ",
        "pass=`",
        "password: ",
        "password=''",
        "'",
        "<password>",
    ]
    for text in (part * (10**6 // len(part)) for part in texts):
        begun = time.process_time()
        masked_text(text)
        assert time.process_time() - begun < 1
