"""Each sentence that `run` prints over random worlds is in the table of templates, and what its words mean holds in tables and journal."""

from collections import Counter

import pytest

from tests.claims.printed import Printed, split
from tests.claims.templates import TEMPLATES
from tests.comparison.test_sentences_in_tables import compared, sentences

QUICK_SEEDS = (704, 705, 1010)  # 1010: checkpoints are under way when the job ends
SLOW_SEEDS, NIGHTLY_SEEDS = range(1000, 1040), range(1000, 1200)
pytestmark = pytest.mark.filterwarnings("ignore:The behavior of:FutureWarning")  # of pandas, about replications without a failure


def false_sentences(seeds):
    """Sentences whose claim does not hold or that have none, by world; and by template how many worlds exercised it."""
    found, exercised = {}, Counter()
    for seed in seeds:
        if not (comparison := compared(seed)):
            continue
        told, templates = Printed(comparison), set()
        for text in sentences(comparison):
            try:
                for template, match in split(text, told.names, TEMPLATES):
                    templates.add(template.name)
                    if not template.claim(told, match):
                        found.setdefault(seed, []).append((template.name, match[0]))
            except ValueError as unknown:
                found.setdefault(seed, []).append(str(unknown))
        exercised.update(templates)
    return found, exercised


def test_sentences_are_true():
    found, exercised = false_sentences(QUICK_SEEDS)

    assert {} == found
    assert len(exercised) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [SLOW_SEEDS, pytest.param(NIGHTLY_SEEDS, marks=pytest.mark.nightly)], ids=lambda seeds: str(len(seeds)))
def test_sentences_of_many_worlds_are_true(seeds):
    found, exercised = false_sentences(seeds)

    assert {} == found
    assert len(exercised) >= 15
