"""A handful of the worlds that run by the thousand at night: same seed, same world; sound ones are sound, wrong ones are caught."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sim.model.schema.study import loads
from tests.oracle import oracle
from tests.worlds import trial
from tests.worlds.broken import BROKEN
from tests.worlds.generator import FOLDER, document, text
from tests.worlds.keys import EXCEPTIONS, all_keys, keys_of
from tests.worlds.limits import LONG_NS
from tests.worlds.nightly import MOST, SOUND, WRONG_EVERY, Task, WorldResult, first_seed, plan, report, run
from tests.worlds.trial import Outcome, run_document, run_text
from tests.worlds.wrong import WRONG

SEEDS = range(40)
SOUND_SEEDS = range(123, 134)
KNOWN_WORLDS = sorted(FOLDER.glob("*.yaml"))
SOUND_WORLD = FOLDER / "alignment-given-up-by-a-newer-barrier.yaml"
LATE_LOG = "changelog: the tail of the log is not part of the snapshot"
# their second job begins behind what the first one committed, which comes twice
GO_BACK = {"changelog-claimed-savepoint"}


def test_a_seed_is_a_world():
    """The same file every time; another seed is another file; all of them can be read."""
    texts = [text(seed) for seed in SEEDS]

    assert texts == [text(seed) for seed in SEEDS]
    assert len(texts) == len(set(texts))
    assert all(len(loads(source, folder=FOLDER).scenarios) == 1 for source in texts[:15])


def test_every_key_of_the_schema_has_its_worlds():
    """Or stands among the exceptions with the reason: a new key of the schema needs a line in the generator."""
    drawn = set().union(*(keys_of(document(seed)) for seed in range(2500)))

    assert set() == all_keys() - drawn - set(EXCEPTIONS), "keys that no world sets"
    assert set() == set(EXCEPTIONS) & drawn, "exceptions that are none"
    assert set() == drawn - all_keys(), "keys the schema does not know"


def test_a_key_is_named_by_its_section():
    world = {
        "version": 1,
        "job": {
            "s": {"source": {"rate": [{"at": "0 s", "rate": "1/s"}]}},
            "k": {"input": {"s": "hash"}, "service": {"uniform": "1 s"}},
        },
        "faults": [{"kill": "k", "every": {"weibull": {"mean": "1 s", "shape": 2}}}],
    }

    assert {
        "version",
        "job",
        "Vertex.source",
        "Source.rate",
        "Step.at",
        "Step.rate",
        "Vertex.input",
        "Vertex.service",
        "DurationLaw.uniform",
        "faults",
        "Fault.kill",
        "Fault.every",
        "Every.weibull",
        "FaultWeibull.mean",
        "FaultWeibull.shape",
    } == keys_of(world)


@pytest.mark.parametrize("file", KNOWN_WORLDS[::3], ids=lambda file: file.stem)
def test_worlds_that_failed_once_are_sound(file):
    """Every third of them; the slow test runs all, on all engines.  Whoever goes back behind what was committed writes it again."""
    hold_sound(file, compare=False)


@pytest.mark.slow
@pytest.mark.parametrize("file", KNOWN_WORLDS, ids=lambda file: file.stem)
def test_engines_agree_on_worlds_that_failed_once(file):
    """And records and state are those of the undisturbed job."""
    hold_sound(file, compare=True)


def hold_sound(file, *, compare):
    outcome = run_text(file.read_text(), compare=compare)

    assert ("violated" if file.stem in GO_BACK else "") == outcome.kind, outcome.fact
    assert file.stem not in GO_BACK or outcome.fact.endswith("committed twice")


def test_sound_worlds_are_sound():
    """No violation, no error, an end, and the engines agree; restarts and commits happen."""
    outcomes = {seed: run_document(document(seed), compare=seed % 4 == 0) for seed in SOUND_SEEDS}

    assert {seed: outcome.finding for seed, outcome in outcomes.items() if outcome.kind} == {}
    assert sum(outcome.restarts for outcome in outcomes.values()) >= 3
    assert sum(outcome.commits for outcome in outcomes.values()) >= 50


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_wrong_strategies_are_caught(wrong):
    """In one of a few worlds at least."""
    assert any(run_document(document(seed, wrong)).kind == "violated" for seed in range(30))


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("source offset: a source skips five records", 300),
        ("rescale: state is forgotten", 316),
        ("next job: it begins without state", 300),
    ],
)
def test_broken_runtimes_are_noticed(name, first):
    """In one of a few worlds at least, and seldom in the first; afterwards the runtime is whole again."""
    results = (run(Task(seed, name)) for seed in range(first, first + 30))
    noticed = next(result for result in results if result.outcome.kind in ("violated", "crash"))

    assert not noticed.bad, "the fault is ours"
    assert run_document(document(SOUND_SEEDS[0])).finding == ""


@pytest.mark.parametrize(
    ("seed", "wrong"), [(5_000_087, "at least once"), (5_000_276, "at least once"), (5_000_755, LATE_LOG)]
)
def test_what_makes_a_world_wrong_leaves_a_scenario(seed, wrong):
    """Whatever is said of subtasks that are gone goes as well, and a claim that a changelog cannot keep."""
    assert loads(text(seed, wrong), folder=FOLDER).scenarios


def test_the_plan_mixes_them():
    """One world in ten has a wrong strategy or a broken runtime, each in turn; one in eight runs on both engines; seeds go up."""
    tasks = plan(800, first=50)

    assert list(range(50, 850)) == [task.seed for task in tasks]
    assert sum(task.wrong != SOUND for task in tasks) == 800 // WRONG_EVERY
    assert set(WRONG) | set(BROKEN) | {SOUND} == {task.wrong for task in tasks}
    assert sum(task.compare for task in tasks) == 100


def test_a_seed_alone_says_what_its_world_is():
    """A run of one seed shows what the whole night showed."""
    assert plan(100, first=50)[30:31] == plan(1, first=80)


def test_seeds_of_two_runs_never_overlap():
    """A run has at most as many worlds as its minute has seeds."""
    now = datetime(2027, 3, 4, 5, 6, tzinfo=UTC)

    assert first_seed(now + timedelta(minutes=1)) - first_seed(now) == MOST
    assert first_seed(now + timedelta(seconds=59)) == first_seed(now)


def judged(seed=1, wrong=SOUND, kind="", fact="", small=""):
    return WorldResult(Task(seed, wrong), Outcome(kind, fact, 1, 5, 9, 2 * 10**9), frozenset({"Vertex.commit"}), small)


def test_a_sound_world_with_a_violation_fails(tmp_path, capsys):
    """It is told by its seed, and its scenario is kept, whole and small."""
    code = report(
        [judged(), judged(7, kind="violated", fact="3 records are lost", small="# it is small\n")], 2, tmp_path
    )

    assert code == 1
    assert (tmp_path / "small-7.yaml").read_text() == "# it is small\n"
    assert text(7).splitlines()[2:] == (tmp_path / "world-7.yaml").read_text().splitlines()[2:]
    assert "seed 7: violated: 3 records are lost" in capsys.readouterr().out


def test_one_record_and_many_are_one_kind_of_finding():
    assert Outcome("violated", "1 record is lost: k0").finding == Outcome("violated", "12 records are lost: k1").finding


def test_a_wrong_world_with_a_violation_is_as_it_should_be(tmp_path):
    wrong = min(WRONG)

    assert report([judged(), judged(8, wrong, "violated", "3 records are lost")], 2, tmp_path) == 0
    assert report([judged(8, wrong, "crash", "KeyError")], 1, tmp_path) == 1, "an error is a mistake of the program"


def test_a_wrong_strategy_that_is_never_caught_is_told(tmp_path, capsys):
    wrong = min(WRONG)
    results = [judged(seed, wrong) for seed in range(40)] + [
        judged(50, name, "violated", "lost") for name in WRONG if name != wrong
    ]

    assert report(results, len(results), tmp_path) == 1
    assert f"  {wrong:70} {40:7} {0:7}  NEVER CAUGHT" in capsys.readouterr().out


def test_a_run_that_is_stopped_tells_what_it_found(tmp_path, capsys):
    def stopped():
        yield judged(7, kind="violated", fact="3 records are lost")
        raise KeyboardInterrupt

    assert report(stopped(), 100, tmp_path) == 130
    printed = capsys.readouterr().out
    assert "stopped after 1 of 100 worlds" in printed
    assert "1 x violated N records are lost (seeds 7)" in printed


def test_an_error_is_a_finding(monkeypatch):
    """The other worlds do not suffer."""

    def broken(*_args, **_kwargs):
        raise ArithmeticError("negative credit\nwith a story")

    monkeypatch.setattr(trial, "simulate", broken)

    assert (run_text(text(1)).kind, run_text(text(1)).fact) == ("crash", "ArithmeticError: negative credit")


def test_a_job_that_restarts_for_ever_is_a_finding(monkeypatch):
    """What its status says is no excuse."""
    honest, status = (
        trial.simulate,
        "RESTARTING FOR EVER: 9 times in a row from checkpoint 2 because of 'flush: no answer within 1 s'",
    )
    free = lambda scenario: scenario.checkpoint.timeout_ns == LONG_NS  # noqa: E731
    stuck = lambda scenario, **options: replace(honest(scenario, **options), job_status=status)  # noqa: E731
    monkeypatch.setattr(
        trial, "simulate", lambda scenario, **options: (honest if free(scenario) else stuck)(scenario, **options)
    )

    assert run_text(SOUND_WORLD.read_text()).kind == "endless"


def test_engines_that_disagree_are_a_finding(monkeypatch):
    """The reference engine counts one record less."""
    honest = trial.simulate

    def miscounting(scenario, *, engine="compiled"):
        result = honest(scenario, engine=engine)
        if engine is oracle:
            result.tasks["numRecordsOut"] -= 1
        return result

    monkeypatch.setattr(trial, "simulate", miscounting)

    assert (
        (outcome := run_text(SOUND_WORLD.read_text(), compare=True)).kind,
        outcome.fact,
    ) == ("differ", "reference and compiled: tasks.numRecordsOut")
