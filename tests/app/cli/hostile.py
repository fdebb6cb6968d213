"""A Flink that means harm: what goes wrong with its answers, by name.  Built on the one that answers as a real job did."""

import contextlib
import gzip
import itertools
import json
import socket
import struct
import time

SECRET = "hunter2hunter2"
ENDLESS_S = 20  # longer than any import waits


def is_plain(text):
    return all(c.isprintable() or c == "\n" for c in text)


def walk(value, change):
    """The JSON with every value that is no container changed."""
    if isinstance(value, dict):
        return {key: walk(item, change) for key, item in value.items()}
    return [walk(item, change) for item in value] if isinstance(value, list) else change(value)


def raw(*parts, every_s=0.0):
    """Bytes instead of an answer, one after the other; a function gives as many as there are."""

    def act(handler, _content):
        end = time.monotonic() + ENDLESS_S
        for part in parts[0]() if callable(parts[0]) else parts:
            handler.connection.sendall(part)
            if every_s:
                time.sleep(every_s)
            if time.monotonic() > end:
                break

    return act


def forever(part, *first):
    """A function that gives the same bytes again and again."""
    return lambda: itertools.chain(first, itertools.repeat(part))


def body(change, headers=(), status=200):
    """Another body; `change` makes it from the right one."""

    def act(handler, content):
        sent = change(content) if callable(change) else change
        handler.send_response(status)
        for name, value in headers or [("Content-Length", str(len(sent)))]:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(sent)

    return act


def answer(change):
    """Another JSON."""
    return body(lambda content: json.dumps(change(json.loads(content))).encode())


def status(code):
    return body(b"", status=code)


def redirect(location, code=302):
    return body(b"", [("Location", location), ("Content-Length", "0")], code)


def reset(first=b""):
    """The connection is torn down; before that, so many bytes."""

    def act(handler, _content):
        handler.connection.sendall(first)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()

    return act


def silence(handler, _content):
    time.sleep(1)


def chunked(*chunks):
    return raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *chunks)


def with_vertices(ids):
    """A job whose vertices are called so, and a plan that knows them."""

    def change(job):
        if "vertices" in job:
            job["vertices"] = [job["vertices"][0] | {"id": name} for name in ids]
            job.pop("plan", None)
        if "plan" in job:
            job["plan"]["nodes"] = [job["plan"]["nodes"][0] | {"id": name, "inputs": []} for name in ids]
        return job

    return answer(change)


def in_circles(job):
    """Every vertex reads every vertex."""
    plan = job.get("plan")
    if plan:
        names = [node["id"] for node in plan["nodes"]]
        plan["nodes"] = [
            node | {"inputs": [{"id": name, "ship_strategy": "HASH"} for name in names]} for node in plan["nodes"]
        ]
    return job


def named(name):
    def change(value):
        return walk(
            value,
            lambda item: (
                name if isinstance(item, str) and ("source" in item.lower() or "sink" in item.lower()) else item
            ),
        )

    return answer(change)


OK = b"HTTP/1.1 200 OK\r\n"
TRAVERSAL = ["../../../evil", "/tmp/evil", "..", "a/../../b", "", "x" * 33, "A" * 32, "a\x00b", "\x1b[31m" + "a" * 27]
NUMBERS = (-1, 10**30, 0, 0, True, "0", None)
ANYWHERE, JOB, OVERVIEW, PLAN, CHECKPOINT = "", "/jobs/:id", "/jobs/overview", "/jobs/:id/plan", "/checkpoints/details/"

# name -> (where: a path, or the end or middle of one, what is done there, seconds for the whole import)
MODES = {
    **{
        f"job called {name[:8]!r}": (OVERVIEW, answer(lambda o, n=name: {"jobs": [o["jobs"][0] | {"jid": n}]}), 5)
        for name in TRAVERSAL
    },
    **{f"vertex called {name[:8]!r}": (JOB, with_vertices([name]), 5) for name in TRAVERSAL},
    "vertices of checkpoints that climb": (
        CHECKPOINT,
        answer(lambda c: c | {"tasks": {name: {} for name in TRAVERSAL}}),
        5,
    ),
    "a byte now and then": (ANYWHERE, raw(forever(b" ", OK, b"\r\n"), every_s=0.02), 0.3),
    "a byte of a header now and then": (ANYWHERE, raw(forever(b"b", OK, b"A: "), every_s=0.02), 0.3),
    "headers without end": (ANYWHERE, raw(OK + b"A: b\r\n" * 10_000), 0.3),
    "a header of a megabyte": (ANYWHERE, raw(OK + b"A: " + b"b" * 10**6), 0.3),
    "continue, for ever": (ANYWHERE, raw(forever(b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" * 100)), 0.3),
    "a body without end": (ANYWHERE, raw(forever(b" " * 10**6, OK, b"\r\n[")), 5),
    "a bomb of gzip": (ANYWHERE, body(gzip.compress(b"[" + b"0," * 10**6), [("Content-Encoding", "gzip")]), 5),
    "deep": (JOB, body(b"[" * 10**6), 5),
    "millions of lists": (JOB, body(b"[" + b"[]," * 7 * 10**6 + b"1]"), 5),
    "a number of a million digits": (JOB, body(b"9" * 10**6), 0.3),
    "NaN and Infinity": (JOB, answer(lambda j: walk(j, lambda v: float("nan") if isinstance(v, int) else v)), 5),
    "huge numbers": (JOB, answer(lambda j: walk(j, lambda v: 10**300 if isinstance(v, int) else v)), 5),
    "negative counters": (JOB, answer(lambda j: walk(j, lambda v: -v if isinstance(v, int) and v < 10**9 else v)), 5),
    "texts for numbers": (JOB, answer(lambda j: walk(j, str)), 5),
    "numbers for texts": (JOB, answer(lambda j: walk(j, lambda v: 7 if isinstance(v, str) else v)), 5),
    **{
        f"{value!r} for everything": (ANYWHERE, body(json.dumps(value).encode()), 5)
        for value in (None, [], {}, "x", 7, [[]])
    },
    **{
        f"{value!r} for the job": (JOB, body(json.dumps(value).encode()), 5)
        for value in (None, [], 7, {"vertices": 7}, {"vertices": [7]})
    },
    **{
        f"{value!r} in lists": (ANYWHERE, answer(lambda a, v=value: [v] if isinstance(a, list) else a), 5)
        for value in (None, 7, [])
    },
    "to another host": (ANYWHERE, redirect("http://localhost:9/x"), 5),
    "to another host, later": (PLAN, redirect("http://localhost:9/x"), 5),
    "more than was announced": (ANYWHERE, body(lambda c: c + c, [("Content-Length", "10")]), 0.3),
    "a length that is none": (ANYWHERE, body(lambda c: c, [("Content-Length", "-7"), ("Content-Length", "x")]), 5),
    "chunks that are none": (ANYWHERE, chunked(b"zz\r\n{}\r\n"), 0.3),
    "a chunk of a negative size": (ANYWHERE, chunked(b"-5\r\n{}\r\n"), 0.3),
    "a trailer without end": (
        ANYWHERE,
        raw(forever(b"A: b\r\n" * 1000, OK, b"Transfer-Encoding: chunked\r\n\r\n0\r\n")),
        0.3,
    ),
    **{
        f"status {code}": (ANYWHERE, status(code), 0.3)
        for code in (204, 304, 400, 401, 403, 404, 407, 418, 429, 500, 503, 599)
    },
    **{f"status {code} for the job": (JOB, status(code), 0.3) for code in (204, 403, 404, 500)},
    "a web page": (ANYWHERE, body(b"<!doctype html><title>\x1b[31m</title>"), 5),
    "no UTF-8": (JOB, body(b'{"name": "\xff\xfe"}'), 0.3),
    "UTF-16": (ANYWHERE, body(lambda c: c.decode().encode("utf-16")), 5),
    "half a character": (ANYWHERE, body(lambda c: c.replace(b'"name": "', b'"name": "\\ud800')), 5),
    "names that paint": (ANYWHERE, named("Source: \x1b[31m\u202e\u2066\x9b\r\n\tx" + "y" * 4000), 5),
    "names with secrets": (
        ANYWHERE,
        named(f"Source: jdbc://me:{SECRET}@db password={SECRET} -> Sink: token '{SECRET}'"),
        5,
    ),
    "an error that paints": (
        ANYWHERE,
        body(json.dumps({"errors": ["\x1b[31m\n" + "x" * 9999]}).encode(), status=400),
        5,
    ),
    "an error of wrong types": (ANYWHERE, body(b'{"errors": {"a": [1]}}', status=400), 5),
    "keys given twice": (JOB, body(lambda c: c[:-1] + b', "vertices": [], "vertices": 7}'), 5),
    "reset at once": (ANYWHERE, reset(), 0.3),
    "reset after the status": (ANYWHERE, reset(OK), 0.3),
    "reset within a body": (ANYWHERE, reset(OK + b"Content-Length: 100\r\n\r\n{"), 0.3),
    "silence": (ANYWHERE, silence, 0.3),
    "silence about the plan": ("/plan", silence, 0.3),
    "silence about checkpoints": (CHECKPOINT, silence, 0.3),
    "nothing": (ANYWHERE, raw(b""), 0.3),
    "20 000 vertices": (JOB, with_vertices([f"{i:032x}" for i in range(20_000)]), 5),
    "200 vertices of one name": (JOB, with_vertices([f"{i:032x}" for i in range(200)]), 0.5),
    "one vertex many times": (JOB, with_vertices(["a" * 32] * 500), 5),
    "cycles": (ANYWHERE, answer(lambda a: in_circles(a) if isinstance(a, dict) else a), 5),
    "checkpoints of any number": (
        "/checkpoints",
        answer(lambda c: c | {"history": [{"id": i, "status": "FAILED"} for i in NUMBERS]}),
        5,
    ),
}


def turn(fake, mode):
    """From now on it answers so.  It lets slip secrets, whatever else it does."""
    where, act, seconds = MODES[mode]
    right = fake.answer
    where = where.replace(":id", fake.job)
    secrets = [{"key": "s3.secret-key", "value": SECRET}, {"key": "env.java.opts", "value": f"-Dx.password={SECRET}"}]
    fake.answers["/jobmanager/config"] = [*fake.answers["/jobmanager/config"], *secrets]
    fake.answers[f"/jobs/{fake.job}/config"]["execution-config"]["user-config"] = {
        "--db.token": SECRET,
        "url": f"http://me:{SECRET}@h/",
    }

    def answer_badly(handler, path, names, fault):
        ends = path.endswith(where) or (where.endswith("/") and where in path)
        if not where or ends or (where == f"/jobs/{fake.job}" and path.endswith("/plan")):
            with contextlib.suppress(OSError):  # the client went away
                act(handler, json.dumps(fake.what_is_at(path, names)).encode())
            return None
        return right(handler, path, names, fault)

    fake.answer = answer_badly
    return seconds
