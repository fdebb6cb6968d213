"""A secret made of anything, written in any syntax that we know: no piece of it is left."""

import base64
import html
import json
import shlex
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.secrets import HIDDEN, masked, masked_text, without_secrets

JOB = "a" * 32
PIECES = st.text("QXZ0123456789", min_size=4, max_size=8)  # no text around them has these
ODD = ",;:/@\"'\\#&=+*$!?~|<>()[]{}%^`.- \t"


def secrets(without=""):
    """Pieces that odd characters join, and what a syntax cannot write left out."""
    joints = st.text([c for c in ODD if c not in without], min_size=1, max_size=3)
    return st.tuples(PIECES, st.lists(st.tuples(joints, PIECES), max_size=3)).map(
        lambda s: s[0] + "".join(map("".join, s[1]))
    )


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def sql(text):
    return "'" + text.replace("'", "''") + "'"


def jaas(text):
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required username=me password={quoted(text)};"


BLANK = " \t"
SYNTAXES = {
    "properties": (BLANK, lambda s: f"rate=five db.password={s} user=me"),
    "a line of properties": (
        "",
        lambda s: f"rate=five\ndb.password={s}\nuser=me" if s[0] not in "'\"" else f"password={quoted(s)}",
    ),
    "yaml": ("", lambda s: f"a: b\n  - api-key: {quoted(s)}\n  c: d"),
    "jaas": ("", jaas),
    "jaas in json": ("", lambda s: json.dumps({"sasl": jaas(s), "rate": 5})),
    "jaas in json in json": ("", lambda s: json.dumps({"text": json.dumps({"sasl": jaas(s), "rate": 5})})),
    "jaas in json that is cut off": ("", lambda s: json.dumps({"sasl": jaas(s), "rate": 5})[:-3]),
    "jaas in json in json that is cut off": (
        "",
        lambda s: json.dumps({"text": json.dumps({"sasl": jaas(s), "rate": 5})})[:-1],
    ),
    "json": ("", lambda s: json.dumps({"accessKey": s, "rate": 5})),
    "json after a word": ("", lambda s: "config: " + json.dumps({"accessKey": s, "rate": 5}, separators=(",", ":"))),
    "json of keys and values": ("", lambda s: "config: " + json.dumps([{"key": "my.secret", "value": s}])),
    "sql": ("", lambda s: f"CREATE TABLE t WITH ('connector' = 'x', 'password' = {sql(s)}, 'rate' = '5')"),
    "sql without blanks": ("", lambda s: f"CREATE TABLE t WITH ('connector'='x','password'={sql(s)},'rate'='5')"),
    "sql users": ("", lambda s: f"CREATE USER me IDENTIFIED BY {sql(s)}; GRANT x"),
    "shell": ("", lambda s: f"run --db-password {shlex.quote(s)} --rate five"),
    "shell with equals": ("", lambda s: f"run --dbPassword={shlex.quote(s)} --rate five"),
    "shell, the whole argument quoted": ("", lambda s: f"java {quoted(f'-Dstore.keyPassword={s}')} -Xmxg main"),
    "shell, short": ("", lambda s: f"sshpass -p {shlex.quote('x' + s)} ssh host"),
    "mysql": (BLANK, lambda s: f"mysqldump -u root -p{s} db"),
    "curl": (BLANK + "'\"", lambda s: f"curl -u me:{s} http://host/"),
    "variables": (BLANK, lambda s: f"env -i DB_PASS={s} LANG=C main"),
    "java": (BLANK, lambda s: f"-Dfoo=bar -Djavax.net.ssl.trustStorePassword={s} -Xmxg"),
    "keytool": (BLANK + "-", lambda s: f"keytool -storepass {s} -alias me"),
    "address": (BLANK + '"<>', lambda s: f"jdbc:postgresql://me:{s}@db/x and more"),
    "address, percent": ("", lambda s: f"failed: mongodb://me:{quote(s, safe='')}@db/x and more"),
    "address, all percent": ("", lambda s: "url=" + quote(f"http://me:{quote(s, safe='')}@db/x", safe="")),
    "address in json": (BLANK + '"<>\\', lambda s: '{"url":"http:\\/\\/me:' + s + '@db\\/x", cut'),
    "query": (BLANK + '&"<>', lambda s: f"jdbc:mysql://db/x?user=me&password={s}&rate=five"),
    "query, percent": ("", lambda s: "callback=" + quote(f"http://db/x?user=me&password={quote(s, safe='')}", safe="")),
    "oracle": (BLANK, lambda s: f"jdbc:oracle:thin:me/{s}@db:port:x failed"),
    "sql server": (BLANK + "}", lambda s: f"jdbc:sqlserver://db;user=me;password={{{s}}};encrypt=true"),
    "buckets": (BLANK + '"<>', lambda s: f"cannot read s3a://me:{s}@bucket/path: denied"),
    "bearer": ("", lambda s: f"GET /x\nAuthorization: Bearer {s}\nAccept: all"),
    "basic": ("", lambda s: f"Proxy-Authorization: Basic {s}"),
    "digest": ("", lambda s: f'Authorization: Digest username="me", response={quoted(s)}'),
    "cookie": ("", lambda s: f"Set-Cookie: session={s}; Path=/"),
    "curl header": ("", lambda s: f"curl -H {quoted(f'Authorization: Bearer {s}')} http://host/"),
    "xml": ("", lambda s: f"<conf><db.password>{html.escape(s)}</db.password><rate>five</rate></conf>"),
    "hadoop": ("", lambda s: f"<property><name>fs.s3a.secret.key</name>\n<value>{html.escape(s)}</value></property>"),
    "xml attributes": ("", lambda s: f'<bean name="password" value="{html.escape(s)}"/>'),
    "netrc": (BLANK, lambda s: f"machine host login me password {s}\n"),
    "python": ("", lambda s: f"connect(user='me', password={s!r})"),
    "a list": ("", lambda s: f"passwords = [{s.replace(']', '')}] of five"),
}


def left_of(text, secret):
    """Pieces of at least four characters that are still there."""
    pieces = "".join(c if c in "QXZ0123456789" else " " for c in secret).split()
    return [piece for piece in pieces if piece in text]


@pytest.mark.parametrize("syntax", SYNTAXES)
@settings(max_examples=20)
@given(data=st.data())
def test_no_piece_of_a_secret_is_left(syntax, data):
    """And what is left has none, to begin with."""
    without, write = SYNTAXES[syntax]
    secret = data.draw(secrets(without))
    text = write(secret)
    plain, count = without_secrets(text)

    assert left_of(plain, secret) == [], text
    assert HIDDEN in plain
    assert count >= 1
    assert left_of(masked_text(text), secret) == [], text
    assert (masked_text(text), 0) == hidden(masked_text(text))


def hidden(answer):
    snapshot, count = masked(RestSnapshot("x", JOB, {"/x": answer}))
    return snapshot.answers["/x"], count


@settings(max_examples=20)
@given(secret=secrets())
@pytest.mark.parametrize(
    "write",
    [
        lambda s: ["--rate", "five", "--db-password", s],
        lambda s: ["-p", f"x{s}"],
        lambda s: ["-u", f"me:{s}"],
        lambda s: ["password", s],
        lambda s: {"user-config": {"a": {"dbPass": [s]}}},
        lambda s: [{"key": "secret", "value": {"a": s}}],
        lambda s: [{"name": "password", "value": s}],
        lambda s: {"text": json.dumps({"a": [{"token": s}]})},
        lambda s: {"java": ["-Dx=five", f"-Dstore.password={s}"]},
        lambda s: {"env": [f"DB_PASSWORD=x{s}"]},
    ],
)
def test_no_secret_is_left_in_an_answer(write, secret):
    """Arguments in a list, pairs, options, JSON in strings."""
    answer, count = hidden(write(secret))

    assert left_of(json.dumps(answer), secret) == []
    assert count == 1


@pytest.mark.parametrize(
    "text",
    [
        "password=hun,ter2",
        "jdbc:x://me:a/hunter2@db",
        "run -p hunter2",
        "run --password hunter2",
        "Authorization: Bearer x-hunter2",
        f"Authorization: Basic {base64.b64encode(b'hunter2').decode()}",
        "AKIAABCDEFGHIJKLMNOP:abcdefghij/klmnopqrst+uvwxyz0123456789AB",
        "password%3Dhunter2",
        "password\\u003dhunter2",
    ],
)
def test_what_was_left_once(text):
    plain, count = without_secrets(text)

    assert count >= 1
    assert [piece for piece in ("hun", "ter2", "aHVu", "uvwxyz") if piece in plain] == []


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (["-p", "16"], ["-p", "16"]),
        ("flink run -p 16 job.jar", "flink run -p 16 job.jar"),
        (["--use-token", "--rate"], ["--use-token", "--rate"]),
        ("jdbc:mysql://db/x?password=a,b&rate=5", f"jdbc:mysql://db/x?password={HIDDEN}&rate=5"),
        ("bypass: on", "bypass: on"),
        (
            "Join(where=[(token = other)], select=[id]) -> Sink",
            f"Join(where=[(token = {HIDDEN})], select=[id]) -> Sink",
        ),
        ("pekko.tcp://flink@host:6123/user/rpc", "pekko.tcp://flink@host:6123/user/rpc"),
        ("hdfs://nn:8020/user/me", "hdfs://nn:8020/user/me"),
        ("Tokenizer: split -> Sink: out", f"Tokenizer: {HIDDEN} -> Sink: out"),
        ({"id": "0.token.numRecordsIn", "value": "5"},) * 2,
    ],
)
def test_what_stays(value, plain):
    """Numbers of tasks, parts of addresses beside a secret, the operators of a chain."""
    assert plain == hidden(value)[0]
