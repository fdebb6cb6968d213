"""Which clauses an answer has, over drawn sweeps: what cannot be told apart, what is surely the least, what is advice, and why."""

import re

import pytest

from sim.studies.sweeps.answer import MAX_NAMED, sentence
from tests.studies.sweeps.test_random_studies import NIGHTLY, QUICK, chosen_of
from tests.studies.sweeps.test_sentences_of_sweeps import drawn

REASONS = {
    "reference": "it is compared with, and no other is surely better",
    "changes": "of these it changes least against what it is compared with",
}
pytestmark = pytest.mark.parametrize(
    "seeds",
    [QUICK, pytest.param(NIGHTLY, marks=[pytest.mark.slow, pytest.mark.nightly])],
    ids=lambda seeds: str(len(seeds)),
)


def test_an_answer_says_how_sure_its_choice_is(seeds):
    """One of: no setting keeps the limits; one window says nothing; surely the least; ties; or a set of which one is advice."""
    found = {"set": 0, "alone": 0, "none": 0, "single": 0}
    for seed in seeds:
        question, rows = drawn(seed)
        selection, text = chosen_of(seed), sentence(question, rows)
        if selection.advised is None:
            found["none"] += 1
            assert ("None of " in text) == bool(question.limits), (seed, text)
            assert "Least " not in text, (seed, text)
            continue
        (first,), (advised,) = selection.eligible[0].setting, selection.advised
        assert re.search(rf"Least {question.least}: .*, with checkpoint.interval {first} \(", text), (seed, text)
        others = [name for (name,) in selection.best if name != first]
        single = selection.compared < 2
        tied = len(selection.ties) == len(others) and first == advised
        found["single" if single else "set" if others else "alone"] += 1
        assert single == ("no setting is surely better than another" in text), (seed, text)
        assert ("It is surely the least" in text) == (not single and not others and len(selection.eligible) > 1), (
            seed,
            text,
        )
        apart = re.search(r"It cannot be told apart from (\d+) others?: ([^.]*)\.", text)
        assert (apart is not None) == (not single and bool(others) and not tied), (seed, text)
        if apart:
            assert len(others) == int(apart[1]), (seed, text)
            assert others[:MAX_NAMED] == re.findall(r"x\d", apart[2]), (seed, text)
        advice = re.search(r"Take checkpoint.interval (x\d)(?: \([^)]*\))?: ([^.]*)\.", text)
        assert (advice is not None) == (not single and bool(others)), (seed, text)
        if advice:
            own = REASONS.get(
                selection.reason, "of equal ones it stands first" if tied else "of these it has the least mean"
            )
            assert advised == advice[1], (seed, text)
            if selection.reason in REASONS or not selection.ties:
                assert own == advice[2], (seed, text)
    assert len(seeds) < 100 or all(found.values()), found
    assert found["set"] >= len(seeds) / 10, found
