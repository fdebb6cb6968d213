"""A job of many vertices is asked with a few requests at once, and a small one with one after the other."""

import threading
import time

import pytest

from benchmarks.wide_import import JobManager
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source import fetching
from sim.jobs.source.fetching import fetch
from sim.jobs.source.recorded_job import Budget
from sim.jobs.source.rest_client import AT_ONCE, MAX_SEQUENTIAL_REQUESTS, Client, answers_of

VERTICES = MAX_SEQUENTIAL_REQUESTS + 8


@pytest.fixture
def job_manager():
    started = []

    def start(vertices, latency_s=0.01):
        started.append(JobManager(vertices, latency_s))
        threading.Thread(target=started[-1].serve, daemon=True).start()
        return started[-1]

    yield start
    for manager in started:
        manager.server.shutdown()
        manager.server.server_close()


def subtasks_of(snapshot):
    return [path for path in snapshot.answers if "/subtasks/" in path]


def test_a_wide_job_is_asked_with_a_few_requests_at_once(job_manager):
    manager, seen = job_manager(VERTICES), []
    snapshot = fetch(manager.url, sample_s=0, answered=seen.append)

    assert 2 <= manager.most_at_once <= AT_ONCE
    assert snapshot.missing == {}
    assert {path for path in manager.answers if "/vertices/" in path and "/metrics" not in path} <= set(
        snapshot.answers
    )
    assert len(subtasks_of(snapshot)) == 4 * VERTICES
    assert seen == sorted(seen)
    assert 5 * VERTICES <= seen[-1] <= manager.requests
    assert len(infer_scenario(snapshot).document["job"]) == VERTICES


def test_metrics_of_a_wide_job_are_sampled_at_once(job_manager, monkeypatch):
    """Every vertex is in each sample, under its own name."""
    monkeypatch.setattr(fetching, "POLL_S", 0.0)
    manager = job_manager(VERTICES, latency_s=0.0)
    snapshot = fetch(manager.url, sample_s=0.01)

    for sample in snapshot.samples.values():
        metrics = {
            path: answer
            for path, answer in manager.answers.items()
            if "/vertices/" in path and path.endswith("/metrics")
        }
        assert metrics.keys() == sample.keys()
        assert all(row in answer for path, answer in metrics.items() for row in sample[path])


def test_a_vertex_without_metrics_does_not_keep_the_others(job_manager, monkeypatch):
    """All vertices that have none yet are asked again together, until the one time for that is over."""
    pauses = []
    monkeypatch.setattr(fetching, "LEARN_S", 0.0)
    manager = job_manager(VERTICES, latency_s=0.0)
    manager.answers |= {path: [] for path in manager.answers if path.endswith("/metrics")}
    fetch(manager.url, sample_s=0.01, client=Client(manager.url, pause=pauses.append))

    assert len(pauses) < 5


def test_few_checkpoints_of_a_wide_job_are_asked_for(job_manager, monkeypatch):
    """Each takes a request per vertex."""
    monkeypatch.setattr(fetching, "MAX_SUBTASK_REQUESTS", 2 * VERTICES + 1)
    snapshot = fetch(job_manager(VERTICES).url, sample_s=0)

    assert len(subtasks_of(snapshot)) == 2 * VERTICES


def test_what_is_left_is_not_sent_when_the_server_is_gone(job_manager):
    """All requests but the first wait until nobody reads any more: no more than those under way have been sent."""
    manager = job_manager(4)
    nobody_reads, answer = threading.Event(), manager.answer

    def answer_late(path):
        if path == "/late":
            nobody_reads.wait()
        return answer(path)

    manager.answer = answer_late
    client = Client(manager.url, pause=lambda _: None)
    answers = answers_of(client, [("/nothing", ""), *[("/late", "")] * 500])
    next(answers)
    answers.close()
    nobody_reads.set()
    time.sleep(0.3)  # if anything were left, it would be sent now

    assert manager.requests <= 1 + AT_ONCE


def test_threads_share_one_budget():
    """What they read together counts, whichever reads first."""
    budget = Budget()
    texts = [b"[%s]" % b",".join([b"1"] * n) for n in range(1, 200)]
    threads = [
        threading.Thread(target=lambda: [budget.parse(text, str(len(text))) for text in texts]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert budget.spent_bytes == sum(budget.bytes_by_place.values()) > 0
