"""One of each thing that can be added, from outside, by the steps of docs/adding.md: nothing else has to know of it."""

import json
import math
import re
import sys
import textwrap
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import pandas as pd
import pytest
import typer.testing
from typer.testing import CliRunner

from sim.advice import levers
from sim.advice.settings import Change, Lever, Situation, protocols
from sim.advice.situation import MESSAGES
from sim.app.cli import app
from sim.app.cli.console import Console
from sim.app.cli.options import Purpose, Verb
from sim.app.cli.terminal import put
from sim.app.verbs.common import SILENT, OptionError, Work
from sim.app.verbs.options import Option, command_line, with_all_options
from sim.jobs.evidence.envelope import features
from sim.model import checkpoint
from sim.model.checkpoint import BARRIERS, DEADLINE, UNALIGNED, BarrierKind, CheckpointOptions
from sim.model.faults import RESTARTS, RestartKind
from sim.model.job import SHIPPING, Distribution, Shipping
from sim.model.options import option
from sim.model.randomness import DISTRIBUTIONS, quantile_table
from sim.model.schema.job import Checkpoint, DeadlineBarriers
from sim.model.schema.option_values import configuration_text, non_default_keys
from sim.model.schema.reference import explain_key, json_schema
from sim.model.schema.sections import DurationDistribution, OneOf
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.sinks import SINKS, Commit
from sim.model.state import BACKENDS, BackendKind
from sim.model.storage import Storage, StorageKind
from sim.model.value_types import ByteRate, Duration
from sim.protocol import barrier_modes, recovery
from sim.protocol.barrier_modes import STRATEGIES
from sim.results import columns
from sim.results.columns import Column
from sim.runtime import task
from sim.runtime.invariants import registry
from sim.runtime.invariants.invariant import Invariant
from sim.runtime.simulate import simulate
from sim.runtime.task.parts import task_features
from sim.storage.media.flat import FlatStorage
from sim.storage.medium import MEDIA, MediumPlugin
from sim.storage.state_backends import BACKEND_FACTORIES
from sim.studies.traces import parsing
from sim.studies.traces.parsing import ColumnReader
from tests.additions import added, with_key, with_options, with_storage
from tests.places import ROOT
from tests.processes import run_python
from tests.scenarios import read_scenario

JOB = """\
# Does the addition work?
version: 1
job:
  source: {{source: {{rate: 1k/s, record: 100 B}}, parallelism: 2}}
  sink: {{input: {{source: {ship}}}, service: 10 us, parallelism: 2, state: {{size: 1 MB, backend: {backend}}}}}
checkpoint: {{interval: 100 ms, barriers: {barriers}}}
storage: {storage}
run: {{duration: 500 ms}}
"""
USUAL = {"ship": "hash", "backend": "hashmap", "barriers": "aligned", "storage": "{bandwidth: 100 MB/s}"}


def scenario(**options):
    return read_scenario(JOB.format(**(USUAL | options)))


def durations(**options):
    """End-to-end durations [ms] of the completed checkpoints."""
    table = simulate(scenario(**options)).tables["checkpoints"]
    return table.end_to_end_duration[table.status == "COMPLETED"].tolist()


@pytest.mark.parametrize(
    ("word", "name"),
    [("barriers", "patient"), ("backend", "notebook"), ("ship", "shuffle"), ("storage", "{tape: {speed: 1 MB/s}}")],
)
def test_nobody_knows_what_was_not_added(word, name):
    """Else the tests below would show nothing."""
    with pytest.raises(ScenarioError):
        scenario(**{word: name})


def test_a_way_of_barriers():
    """A record and a page."""
    kind = BarrierKind("patient", {UNALIGNED: "false", "execution.checkpointing.patience": "endless"}, advised=("off",))
    with added(BARRIERS, kind), added(STRATEGIES, replace(STRATEGIES["aligned"], name="patient")):
        chosen = scenario(barriers="patient")

        assert durations() == durations(barriers="patient") != []
        assert "execution.checkpointing.patience: endless\n" in configuration_text(chosen)
        assert "patient" in [protocol.name for protocol in protocols()]
        assert features(chosen)["barriers"] == ("patient",)
        assert '"patient"' in str(json_schema()["$defs"]["Checkpoint"]).replace("'", '"')


def test_the_first_contribution():
    """The steps of CONTRIBUTING.md, code and all."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    test, record, mode = (
        textwrap.dedent(block).strip() for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    )
    of_the_test, of_the_mode = {}, dict(vars(barrier_modes))
    exec(test, of_the_test)
    holds = of_the_test["test_files_are_written_behind_the_barrier"]
    with pytest.raises(ScenarioError, match="files-later"):
        holds()

    exec(mode, of_the_mode)
    with added(BARRIERS, eval(record, vars(checkpoint))):
        with added(STRATEGIES, of_the_mode["FILES_LATER"]):
            holds()
        with (
            added(STRATEGIES, replace(of_the_mode["FILES_LATER"], phases=barrier_modes.ALIGNED_PHASES)),
            pytest.raises(AssertionError),
        ):
            holds()


def test_a_way_of_barriers_with_a_deadline(monkeypatch):
    """The same; its key stands in sections that are made after it."""
    kind = replace(
        BARRIERS["aligned-timeout"], name="hasty", flink={UNALIGNED: "true", "execution.checkpointing.haste": DEADLINE}
    )
    page = replace(STRATEGIES["aligned-timeout"], name="hasty")
    monkeypatch.setattr(DeadlineBarriers, "ONE_OF", (OneOf({"aligned-timeout": "", "hasty": ""}),))
    with added(BARRIERS, kind), added(STRATEGIES, page), with_key(DeadlineBarriers, "hasty", Duration):
        assert durations(barriers="{aligned-timeout: 1 s}") == durations(barriers="{hasty: 1 s}") != []
        assert "execution.checkpointing.haste: 1 s\n" in configuration_text(scenario(barriers="{hasty: 1 s}"))


def test_a_state_backend(monkeypatch):
    """A record, and what makes one."""
    monkeypatch.setitem(BACKEND_FACTORIES, "notebook", BACKEND_FACTORIES["hashmap"])
    with added(BACKENDS, BackendKind("notebook")):
        assert durations() == durations(backend="notebook") != []
        assert "notebook" in features(scenario(backend="notebook"))["state"]
        assert "notebook" in str(json_schema()["$defs"]["State"])


def test_a_way_to_ship_records():
    """A record: it goes the way of one of the plane's routings."""
    with added(SHIPPING, Shipping("shuffle", "REBALANCE")):
        assert durations(ship="rebalance") == durations(ship="shuffle") != []
        assert features(scenario(ship="shuffle"))["exchanges"] == ("shuffle",)
        assert "shuffle" in str(json_schema()["$defs"]["Input"])


def test_a_distribution():
    """A record; its key stands in sections that are made after it."""
    same = DISTRIBUTIONS["uniform"]
    with added(DISTRIBUTIONS, replace(same, name="even")), with_key(DurationDistribution, "even", Duration):
        even, uniform = (
            loads(JOB.format(**USUAL).replace("service: 10 us", f"service: {{{name}: 10 us}}"))
            .scenarios[0]
            .job.vertex("sink")
            .inputs[0]
            .service
            for name in ("even", "uniform")
        )

        assert Distribution(10_000, "even") == even
        assert quantile_table(even) == quantile_table(uniform)
        assert "even" in json_schema()["$defs"]["DurationDistribution"]["properties"]


@dataclass(frozen=True)
class Tape:
    """A tape drive for every file."""

    bytes_per_second: ByteRate = option(MISSING, "Of all files together.", key="speed")


def test_a_kind_of_storage():
    """Options and a record, a medium: the section follows from the options."""
    kind = StorageKind("tape", Tape, "tape", appends=False)
    medium = MediumPlugin(
        "tape",
        lambda attempts, _, __, tape, seed: FlatStorage(
            attempts, Storage(bytes_per_second=tape.bytes_per_second), seed
        ),
    )
    with added(MEDIA, medium), with_storage(kind):
        assert Tape(10**8) == scenario(storage="{tape: {speed: 100 MB/s}}").storage.options
        flat_ms = scenario().overheads.file_ns / 10**6  # what a file of flat storage takes beside its bytes

        assert (
            [pytest.approx(ms - flat_ms) for ms in durations()] == durations(storage="{tape: {speed: 100 MB/s}}") != []
        )
        assert features(scenario(storage="{tape: {speed: 100 MB/s}}"))["storage"] == ("tape",)
        assert "Tape" in json_schema()["$defs"]
        with pytest.raises(ScenarioError, match="storage is a dfs already: write one of the two"):
            scenario(storage="{dfs: {nodes: 3}, tape: {speed: 100 MB/s}}")
        with pytest.raises(ScenarioError, match="a tape has none"):
            scenario(storage="{tape: {speed: 100 MB/s}, file-merging: on}")
    assert "Tape" not in json_schema()["$defs"]


BUNDLES = """
from sim.runtime.task.parts import TaskFeature, TaskPart

heard, restored = [], []


class Bundles(TaskPart):
    listens = True

    def before_barrier(self, checkpoint):
        return 7_000_000

    def cut(self, checkpoint, snapshot):
        snapshot.kept["bundles"] = checkpoint

    def completed(self, checkpoint):
        heard.append(checkpoint)

    def restored(self, snapshot):
        restored.append(snapshot.kept["bundles"])


FEATURE = TaskFeature(lambda slot, _: Bundles() if slot.vertex.source is None else None)
"""


def test_a_feature_of_a_task(monkeypatch, tmp_path):
    """One file: a part that flushes for 7 ms before each barrier, keeps something in snapshots, and hears of each completion."""
    (tmp_path / "bundles.py").write_text(BUNDLES)
    failing = read_scenario(
        JOB.format(**USUAL) + "faults: [{kill: sink, at: 350 ms}]\n", overrides=["run.duration=5 s"]
    )
    without = simulate(scenario()).tables["subtasks"]
    monkeypatch.setattr(task, "__path__", [*task.__path__, str(tmp_path)])
    try:
        task_features.cache_clear()
        subtasks = simulate(failing).tables["subtasks"]
        bundles = sys.modules.pop(f"{task.__name__}.bundles")
    finally:
        monkeypatch.undo()
        task_features.cache_clear()
    sinks = subtasks.vertex == "sink"

    assert {0.0} == set(without.x_pre_barrier)
    assert {0.0, 7.0} == set(subtasks.x_pre_barrier)
    assert {7.0} == set(subtasks.x_pre_barrier[sinks & (subtasks.status == "completed")])
    assert set(subtasks.id[subtasks.status == "completed"]) >= set(bundles.heard) != set()
    assert set(bundles.heard) >= set(bundles.restored) != set()


def test_a_checker(monkeypatch):
    """An invariant: it observes an event, and what it reports is told with the run."""
    statement = "there is no third checkpoint"

    class Superstition(Invariant):
        def completed(self, checkpoint, retained):
            if checkpoint == 3:
                self.report(statement, f"{len(retained)} are kept")

    assert simulate(scenario()).violations == ()
    monkeypatch.setattr(registry, "INVARIANTS", (*registry.INVARIANTS, Superstition))
    assert [(statement, "1 are kept")] == [(found.invariant, found.fact) for found in simulate(scenario()).violations]


def test_a_restart_strategy(monkeypatch):
    """A record, and what makes one."""
    monkeypatch.setitem(recovery.MAKERS, "hopeful", recovery.MAKERS["fixed-delay"])

    def restarts(strategy):
        changes = [f"restart.strategy={strategy}", "faults=[{kill: sink, at: 200 ms}]", "run.duration=3 s"]
        failing = read_scenario(JOB.format(**USUAL), overrides=changes)
        return simulate(failing).tables["recoveries"].running.tolist()

    with pytest.raises(ScenarioError, match="not 'hopeful'"):
        restarts("hopeful")
    with added(RESTARTS, RestartKind("hopeful", "attempts", ("delay",))):
        assert restarts("fixed-delay") == restarts("hopeful") != restarts("none")


def test_a_sink():
    """A record: `commit: as-connector` has its options."""
    with added(SINKS, replace(SINKS["kafka-exactly-once"], name="pigeons", commit=Commit(transaction_timeout_ns=7))):
        changes = ["job.sink.connector=pigeons", "job.sink.commit=as-connector"]
        chosen = read_scenario(JOB.format(**USUAL), overrides=changes)
        assert chosen.job.vertex("sink").commit.transaction_timeout_ns == 7
        assert "pigeons" in str(json_schema()["$defs"]["Vertex"])


def test_a_lever(monkeypatch):
    """A record and its place in the list."""
    lever = Lever(
        "closer",
        (MESSAGES,),
        lambda situation: iter([Change(lever, "closer", {"overheads.trigger": "0 s"})]),
        costs="rent",
    )
    situation = Situation(scenario(), {}, protocols()[0], 10**8, {MESSAGES: 1.0}, {})
    before = list(levers.rank_levers(situation))
    monkeypatch.setattr(levers, "LEVERS", (*levers.LEVERS, lever))

    assert ([], [lever]) == (before, [found for found, _ in levers.rank_levers(situation)])


def test_a_column(monkeypatch):
    """One line of the schema."""
    seconds = Column("x_seconds", "s", "", lambda row: row["end_to_end_duration"] / 1000)
    monkeypatch.setitem(columns.TABLES, "checkpoints", (*columns.TABLES["checkpoints"], seconds))
    table = simulate(scenario()).tables["checkpoints"]

    assert (table.end_to_end_duration / 1000).tolist() == table.x_seconds.tolist() != []


PRINTED_COLUMN = """
import importlib.util, json, sys
from pathlib import Path

found = importlib.util.find_spec("sim.results.summary")
text = Path(found.origin).read_text()
field = "    completed: int = "
assert text.count(field) == 1
added = (
    "    finalized_ms: float = result_column('acknowledged -> completed, longest', Population.COMPLETED, "
    "lambda run: float(run.done['x_finalization'].max()), title='longest finalization', heading='finalized')\\n"
)
module = importlib.util.module_from_spec(found)
sys.modules[found.name] = module
exec(compile(text.replace(field, added + field), found.origin, "exec"), vars(module))

import sim
from sim.results.side_by_side import table, texts
from sim.studies.cells import OUTCOME, described, outcome
from sim.studies.plan import cells

comparison = sim.load(Path(sys.argv[1])).run().comparison
header, rows = texts(comparison.strategies)
print(json.dumps({
    "printed": [row[header.index("finalized")] for row in rows],
    "table": table(comparison.strategies)["finalized_ms"].tolist(),
    "row": outcome(next(iter(cells([comparison.results[rows[0][0]][0].scenario]))))["finalized_ms"],
    "type": OUTCOME["finalized_ms"].type.__name__,
    "described": [row for row in described()["results"] if row[0] == "finalized_ms"],
}))
"""


def test_a_printed_column(tmp_path):
    """One field of `Summary`: printed, also for checkpoints that expire, in rows of sweeps, described."""
    text = JOB.format(**USUAL | {"barriers": "[aligned, unaligned]"})
    slow = text.replace("interval: 100 ms", "interval: 100 ms, timeout: 200 ms").replace(
        "service: 10 us", "service: 1 ms"
    )
    (tmp_path / "job.yaml").write_text(slow.replace("duration: 500 ms", "duration: 5 s").replace("1k/s", "5k/s"))
    done = run_python("-c", PRINTED_COLUMN, tmp_path / "job.yaml")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert "-" in found["printed"], "the row of expired checkpoints"
    assert [text for text in found["printed"] if text != "-"] != []
    assert any(value > 0 for value in found["table"])
    assert any(value == found["row"] or math.isnan(found["row"]) for value in found["table"])
    assert found["type"] == "float"
    assert [row[:2] for row in found["described"]] == [["finalized_ms", "ms"]]
    assert found["described"][0][2].startswith("acknowledged -> completed, longest; of completed ")


def test_a_format_of_traces(monkeypatch):
    """One line of the formats."""
    read = lambda texts, reader: parsing.rates(texts, reader, time="t", rate="sheep")  # noqa: E731
    sheep = parsing.Format("sheep", lambda names: "sheep" in names, read)
    monkeypatch.setattr(parsing, "FORMATS", (sheep, *parsing.FORMATS))
    found = parsing.recognised(["t", "sheep"])

    assert found.name == "sheep"
    assert found.parse(pd.DataFrame({"t": ["0"], "sheep": ["7"]}), ColumnReader()).tables["rates"].rate.tolist() == [
        7.0
    ]


def test_an_option():
    """A record at a field of the model: the section, its schema and the reference have the key, the model the value."""

    @dataclass(frozen=True, slots=True)
    class Patient(CheckpointOptions):
        patience_ns: Duration = option(5 * 10**9, "How long it waits.", flink="execution.checkpointing.patience")

    with pytest.raises(ScenarioError, match="unknown key 'patience'"):
        loads(JOB.format(**USUAL), overrides=["checkpoint.patience=3 s"])
    with with_options(Checkpoint, Patient):
        usual = read_scenario(JOB.format(**USUAL))
        chosen = read_scenario(JOB.format(**USUAL), overrides=["checkpoint.patience=3 s"])

        assert (usual.checkpoint.patience_ns, chosen.checkpoint.patience_ns) == (5 * 10**9, 3 * 10**9)
        assert json_schema()["$defs"]["Checkpoint"]["properties"]["patience"]["description"] == "How long it waits."
        reference = explain_key("checkpoint.patience")
        assert (reference.default, reference.flink) == ("5 s", ("execution.checkpointing.patience",))
        assert explain_key("execution.checkpointing.patience").key == "checkpoint.patience"
        pasted = read_scenario(JOB.format(**USUAL) + "flink: {execution.checkpointing.patience: 7s}\n")
        assert pasted.checkpoint.patience_ns == 7 * 10**9
        assert "execution.checkpointing.patience: 7 s\n" in configuration_text(pasted, ["checkpoint.patience"])
        # not the default
        assert {"execution.checkpointing.patience"} == non_default_keys(pasted).keys() ^ non_default_keys(usual).keys()
    assert "patience" not in json_schema()["$defs"]["Checkpoint"]["properties"]


class CountOptions(TypedDict, total=False):
    """The options of a verb."""

    least: Annotated[int, Option("Fewer are a warning.", 0)]


@with_all_options(CountOptions)
def count_checkpoints(file, *, listener=SILENT, **options: Unpack[CountOptions]):
    """A verb: arguments, options and a listener in, a result out."""
    least = options["least"]
    if least < 0:
        raise OptionError("least", "expected 0 or more")
    run = read_scenario(file.read_text(), file.stem)
    with listener.progress(Work(file.stem, run.run.duration_ns, 1)) as watch:
        found = len(simulate(run, progress=lambda now_ns: watch(0, now_ns)).checkpoints)
    if found < least:
        listener.warning(f"{found} checkpoints")
    listener.result(found)
    return found


def count_command(file: Path, **options: Unpack[CountOptions]):
    """Count checkpoints."""
    with Console(lambda found: put(f"{found} checkpoints")) as console:
        count_checkpoints(file, listener=console, **options)


@pytest.mark.parametrize(
    ("arguments", "code", "printed", "message"),
    [
        (["job.yaml"], 0, "5 checkpoints\n", ""),
        (["job.yaml", "--least", "99"], 0, "5 checkpoints\n", "warning: 5 checkpoints\n"),
        (["job.yaml", "--least", "-1"], 2, "", "--least: expected 0 or more\n"),
        (["nowhere.yaml"], 3, "", "nowhere.yaml: No such file or directory\n"),
        (["broken.yaml"], 3, "", "broken: checkpoint: required key is missing, e.g. checkpoint: {interval: 30 s}\n"),
    ],
)
def test_a_verb(tmp_path, monkeypatch, arguments, code, printed, message):
    """A function with values and a listener, and a command that prints; the frame says mistakes, warnings and codes."""
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB.format(**USUAL))
    Path("broken.yaml").write_text("version: 1\n")
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
    made_once = typer.testing._get_command  # tests of the command keep what it gives
    monkeypatch.setattr(typer.testing, "_get_command", getattr(made_once, "__wrapped__", made_once))
    Verb("count", Purpose.LOOK, 3, "Count checkpoints.", count_command).add_to(app)
    done = CliRunner().invoke(app, ["count", *arguments], prog_name="ckptsim", catch_exceptions=False)

    assert (code, printed) == (done.exit_code, done.stdout)
    assert done.stderr.startswith(message) if message else not done.stderr
    assert "Count checkpoints." in CliRunner().invoke(app, ["--help"], prog_name="ckptsim").stdout
    assert count_checkpoints(Path("job.yaml")) == 5
    assert "Fewer are a warning." in CliRunner().invoke(app, ["count", "--help"], prog_name="ckptsim").stdout
    assert command_line("count", ["job.yaml"], CountOptions, {"least": 9}) == "ckptsim count job.yaml --least 9"


def test_a_name_stands_once():
    """Two records of one name would hide one of them."""
    with pytest.raises(ValueError, match="'aligned' is in the catalog already"):
        BARRIERS.add(BARRIERS["aligned"])
