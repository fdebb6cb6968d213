"""The import of a wide job from its JobManager: seconds, requests, and how many of them at once.

    python -m benchmarks.wide_import [--vertices 1000] [--latency-ms 20] [--sample 0s]

A server on loopback answers as a saved Flink did, whose middle vertex is there as often as asked for.  It is a process
of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

__all__ = ["JobManager", "widened"]

SAVED = Path(__file__).resolve().parent.parent / "tests" / "data" / "rest" / "pressed.zip"


def widened(vertices: int) -> tuple[str, dict[str, Any]]:
    """(job, answers by path) of source, map and sink, saved from a real Flink, with as many maps in a chain as fill the number.

    Metrics are answers below `.../metrics`, all of one sample.
    """
    from sim.jobs.source.saved import read_saved

    saved = read_saved(SAVED)
    about, sample = f"/jobs/{saved.job}", next(iter(saved.samples.values()))
    details = dict(saved.answers[about])
    by_name = {vertex["name"]: vertex for vertex in details["vertices"]}
    source, middle, sink = (by_name[name]["id"] for name in ("Source: src", "map", "sink"))
    maps = [f"{place:032x}" for place in range(1, vertices - 1)]
    nodes = {node["id"]: node for node in saved.answers[f"{about}/plan"]["plan"]["nodes"]}
    chain = [source, *maps, sink]

    def node(place: int, own: str) -> dict[str, Any]:
        like = nodes[own if own in nodes else middle] | {"id": own}
        return like if place == 0 else like | {"inputs": [nodes[sink]["inputs"][0] | {"id": chain[place - 1]}]}

    answers = {path: answer for path, answer in (saved.answers | sample).items() if middle not in path}
    answers[f"{about}/plan"] = {"plan": {"nodes": [node(place, own) for place, own in enumerate(chain)]}}
    clones = [by_name["map"] | {"id": own, "name": f"map {place}"} for place, own in enumerate(maps)]
    details |= {
        "vertices": [by_name["Source: src"], *clones, by_name["sink"]],
        "plan": answers[f"{about}/plan"]["plan"],
    }
    answers[about] = details
    for path, answer in (saved.answers | sample).items():
        if middle in path:
            answers |= {path.replace(middle, own): answer for own in maps}
        elif path.startswith(f"{about}/checkpoints/details/") and "/subtasks/" not in path:
            tasks = answer["tasks"]
            answers[path] = answer | {"tasks": {own: tasks[own if own in tasks else middle] for own in chain}}
    return saved.job, answers


class JobManager:
    """A server of such answers, each `latency_s` after its request.  It counts requests, those at once, and connections."""

    def __init__(self, vertices: int, latency_s: float = 0.0) -> None:
        self.job, self.answers = widened(vertices)
        self.requests = self.at_once = self.most_at_once = 0
        counting, outer = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with counting:
                    outer.requests += 1
                    outer.at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer.at_once)
                time.sleep(latency_s)
                status, body = outer.answer(self.path)
                with counting:
                    outer.at_once -= 1
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[int, bytes]:
        path, _, query = path.partition("?get=")
        answer = self.answers.get(path)
        if path.endswith("/metrics") and answer is not None:
            names = query.split(",")
            answer = [row for row in answer if row["id"] in names] if query else [{"id": row["id"]} for row in answer]
        return (404, b'{"errors": ["NotFound"]}') if answer is None else (200, json.dumps(answer).encode())

    def serve(self) -> None:
        self.server.serve_forever(0.05)


def _serve(vertices: int, latency_s: float, pipe: Connection) -> None:
    manager = JobManager(vertices, latency_s)
    threading.Thread(target=manager.serve, daemon=True).start()
    pipe.send(manager.url)
    pipe.recv()
    pipe.send((manager.requests, manager.most_at_once))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--sample", default="0s")
    given = parser.parse_args()
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(given.vertices, given.latency_ms / 1e3, there)
    )
    server.start()
    url = here.recv()
    begun = time.monotonic()
    command = [sys.executable, "-m", "sim", "import", url, "--sample", given.sample]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    here.send(None)
    requests, at_once = here.recv()
    server.join()
    print(done.stderr[-2000:], file=sys.stderr)
    print(
        f"exit {done.returncode}: {given.vertices} vertices, {requests} requests of {given.latency_ms:g} ms, at most {at_once} at once: "
        f"{wall_s:.1f} s, {used.ru_utime + used.ru_stime:.1f} CPU s, {len(done.stdout.splitlines())} lines"
    )


if __name__ == "__main__":
    main()
