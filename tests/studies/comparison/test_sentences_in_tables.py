"""Every number in every sentence of `run` stands in the tables, over random worlds: none is a mean of unlike checkpoints."""

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.results.formats import ms_text
from sim.results.side_by_side import texts
from sim.runtime.simulate import simulate
from sim.studies.compare import compare
from tests.studies.comparison.sentence_numbers import (
    ID,
    named,
    numbers,
    of_cells,
    of_checkpoint,
    of_consequences,
    of_strategies,
)
from tests.worlds.generator import FOLDER, text

QUICK_SEEDS = range(704, 708)
SLOW_SEEDS, NIGHTLY_SEEDS = range(1000, 1040), range(1000, 1200)
# of pandas, about replications without a failure
pytestmark = pytest.mark.filterwarnings("ignore:The behavior of:FutureWarning")


@lru_cache(maxsize=len(QUICK_SEEDS))
def compared(seed):
    """A world under its own barriers and, where it can be, under others, in two replications each; None: it cannot be read."""
    source = text(seed)
    results = []
    for barriers in (None, "unaligned", "aligned"):
        changes = [] if barriers is None else [f"checkpoint.barriers={barriers}"]
        try:
            (scenario,) = loads(source, folder=FOLDER, overrides=changes).scenarios
        except ScenarioError:
            continue
        for k in range(2):
            run = replace(scenario.run, seed=scenario.run.seed + k)
            axes = (("checkpoint.barriers", barriers or "own"),)
            results.append(simulate(replace(scenario, run=run, axes=axes), check=False))
    return compare(results) if results else None


def missing(comparison, sentence):
    """Numbers of a sentence that no table has."""
    names = {name for line in comparison.strategies for name in (line.label, line.name, line.group, *_messages(line))}
    names |= {
        f"'{vertex}'"
        for results in comparison.results.values()
        for vertex in results[0].tables["tasks"]["vertex"].unique()
    }
    known = {*of_cells(texts(comparison.strategies)[1]), *of_strategies(comparison.table)}
    known |= {*of_consequences(comparison.consequences.values())}
    known |= {f"{warm.ns / 1e6:g}" for warm in comparison.warm_ups.values()}
    for rows in (result.checkpoints for results in comparison.results.values() for result in results):
        savepoints = rows[rows["savepointFormat"] != ""]
        known |= {str(number) for number in savepoints["id"]} | {
            ms_text(ms) for ms in savepoints["end_to_end_duration"]
        }
    for line in comparison.strategies:
        known |= {str(count) for _, count in line.singles.failures}
    for replication, job, number in named(sentence):
        for results in comparison.results.values():
            if replication < len(results):
                known |= {*of_checkpoint(results[replication].tables, job, number)}
    return [number for number in numbers(sentence, names) if number not in known]


def _messages(line):
    """Messages of Flink and of the run, as the table has them."""
    row, status = line.summary, line.status
    return (
        status.partition(": ")[2].rstrip("."),
        status.rstrip("."),
        row.failure.rstrip("."),
        row.standstill,
        f"{row.bottleneck}[",
    )


def sentences(comparison):
    return [
        sentence for sentence in (comparison.verdict, comparison.overload, comparison.consequences_sentence) if sentence
    ]


def hold(seeds):
    """Numbers that are missing, by world; and how many numbers there were."""
    found, count = {}, Counter()
    for seed in seeds:
        if not (comparison := compared(seed)):
            continue
        for sentence in sentences(comparison):
            count["numbers"] += len(numbers(sentence))
            count["ids"] += len(ID.findall(sentence))
            if lost := missing(comparison, sentence):
                found[seed] = (sentence, lost)
    return found, count


def test_numbers_of_sentences_stand_in_tables():
    found, count = hold(QUICK_SEEDS)

    assert found == {}
    assert count["numbers"] >= 2 * len(QUICK_SEEDS)
    assert count["ids"] >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [SLOW_SEEDS, pytest.param(NIGHTLY_SEEDS, marks=pytest.mark.nightly)], ids=lambda seeds: str(len(seeds))
)
def test_numbers_of_the_sentences_of_many_worlds_stand_in_tables(seeds):
    found, count = hold(seeds)

    assert found == {}
    assert count["numbers"] > 2 * len(seeds)


def test_a_number_that_is_changed_is_missed():
    """Nine of ten: another number of the tables may be the same by chance."""
    changed = caught = 0
    for seed in QUICK_SEEDS:
        comparison = compared(seed)
        for match in re.finditer(r"\d+(?:\.\d+)?(?= (?:ms|s|[kMG]?B|%))", comparison.verdict):
            other = f"{1.37 * float(match[0]) + 1:.2g}"
            sentence = comparison.verdict[: match.start()] + other + comparison.verdict[match.end() :]
            changed += 1
            caught += bool(missing(comparison, sentence))
    assert changed >= 6
    assert caught >= 0.9 * changed


def test_numbers_are_found_with_their_units():
    sentence = "Barriers of checkpoint 7 of job 1 (rate 1k/s) wait behind 3.1 s of 'm2' (busy 99 %), 4.2k records, ±0 %, 12 of 18, 3 MB/s."

    assert numbers(sentence, ["rate 1k/s", "'m2'"]) == ["3.1 s", "99 %", "4.2k", "±0 %", "12", "18", "3 MB/s"]
    assert {(0, 1, 7)} == named(sentence)
