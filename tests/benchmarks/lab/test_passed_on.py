"""Records of several sizes mix in the shares in which an operator serves its inputs."""

import pytest

from benchmarks.lab.config import Configuration
from benchmarks.lab.passed_on import mean_bytes


def job(*nodes):
    return Configuration.model_validate({"name": "job", "duration_s": 60, "nodes": nodes})


def source(name, size, rate=0.0, parallelism=1):
    return {"id": name, "kind": "source", "recordBytes": size, "rate": rate, "parallelism": parallelism}


def op(name, *inputs, us=1000, parallelism=1, **fields):
    edges = [{"from": edge, "exchange": "keyby"} if isinstance(edge, str) else edge for edge in inputs]
    return {"id": name, "inputs": edges, "serviceUs": us, "parallelism": parallelism, **fields}


def test_one_size_stays_what_it_is():
    assert mean_bytes(job(source("a", 300), op("b", "a"))) == {"a": 300, "b": 300}


def test_rates_weigh():
    """300 records/s of 100 B beside 100 records/s of 500 B, all of them served."""
    assert mean_bytes(job(source("a", 100, 300), source("b", 500, 100), op("u", "a", "b")))["u"] == 200


def test_too_much_is_cut_in_equal_shares():
    assert mean_bytes(job(source("a", 100, 3000), source("b", 500, 1000), op("u", "a", "b")))["u"] == 200


def test_an_unlimited_input_takes_the_time_that_is_left():
    """In 1000 ms each of two subtasks spends 2 * 50 * 1 ms on broadcast records; the rest is for the others, 2 ms each."""
    control = {"from": "b", "exchange": "broadcast"}
    join = op("j", "a", control, us=2000, serviceUs2=1000, kind="join", parallelism=2)
    found = mean_bytes(job(source("a", 1000), source("b", 100, 50), join))["j"]

    assert pytest.approx(found) == (950 * 1000 + 100 * 100) / 1050


def test_a_join_takes_turns_by_record_and_a_union_by_buffer():
    nodes = source("a", 100), source("b", 300)

    assert mean_bytes(job(*nodes, op("j", "a", "b", kind="join")))["j"] == 200
    assert pytest.approx(mean_bytes(job(*nodes, op("u", "a", "b")))["u"]) == 150


def test_requests_limit_a_rate():
    """Two requests of 100 ms: 20 records/s of the unlimited source come out, 40 of the other are there."""
    ask = op("ask", "a", us=0, kind="asyncwait", latencyMs=100, capacity=2)

    found = mean_bytes(job(source("a", 900), source("b", 300, 40), ask, op("u", "ask", "b")))["u"]

    assert pytest.approx(found) == (20 * 900 + 40 * 300) / 60
