"""A handful of the worlds that run by the thousand at night: same seed, same world; sound ones are sound, wrong ones are caught."""

from dataclasses import replace

import pytest

from sim.model.schema.study import loads
from tests.oracle import oracle
from tests.worlds import regional, trial
from tests.worlds.generator import FOLDER, document, text
from tests.worlds.keys import EXCEPTIONS, all_keys, keys_of
from tests.worlds.limits import LONG_NS
from tests.worlds.trial import run_document, run_text
from tests.worlds.wrong import WRONG

SEEDS = range(40)
SOUND_SEEDS = range(123, 134)
KNOWN_WORLDS = sorted(FOLDER.glob("*.yaml"))
SOUND_WORLD = FOLDER / "alignment-given-up-by-a-newer-barrier.yaml"
# a second job begins behind what the first one committed, or barriers are at-least-once: records come twice
GO_BACK = {"changelog-claimed-savepoint", "at-least-once-sink-reads-less-again"}


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


@pytest.mark.parametrize("file", KNOWN_WORLDS[::9], ids=lambda file: file.stem)
def test_worlds_that_failed_once_are_sound(file):
    """Every ninth of them; the slow test runs all, on all engines.  Whoever goes back behind what was committed writes it again."""
    hold_sound(file, compare=False)


@pytest.mark.slow
@pytest.mark.parametrize("file", KNOWN_WORLDS, ids=lambda file: file.stem)
def test_engines_agree_on_worlds_that_failed_once(file):
    """And records and state are those of the undisturbed job."""
    hold_sound(file, compare=True)


def hold_sound(file, *, compare):
    outcome = run_text(file.read_text(), compare=compare)

    assert ("violated" if file.stem in GO_BACK else "") == outcome.kind, outcome.fact
    assert file.stem not in GO_BACK or outcome.fact.endswith(" twice")


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

    def miscounting(scenario, *, engine="compiled", **options):
        result = honest(scenario, engine=engine, **options)
        if engine is oracle:
            result.tasks["numRecordsOut"] -= 1
        return result

    monkeypatch.setattr(trial, "simulate", miscounting)

    assert (
        (outcome := run_text(SOUND_WORLD.read_text(), compare=True)).kind,
        outcome.fact,
    ) == ("differ", "reference and compiled: tasks.numRecordsOut")


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(20797, id="an acknowledgement is on its way when its part is replaced"),
        pytest.param(20546, id="files are needed until the last reference to them goes"),
        pytest.param(31435, id="and so is metadata"),
        pytest.param(50272, id="a task that is new finishes in a failed region"),
    ],
)
def test_worlds_with_regional_checkpoints_violate_what_the_proposal_violates(seed):
    _, others, replaced, _ = regional.run(seed)

    assert others == []
    assert replaced > 0
