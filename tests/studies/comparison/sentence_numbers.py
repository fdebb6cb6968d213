"""The numbers in a sentence, each as text, with its unit; random worlds compared, and the sentences about them."""

import re
from dataclasses import replace
from functools import lru_cache

from sim.model.schema.text import ScenarioError
from sim.runtime.simulate import simulate
from sim.studies.compare import comparison_of
from tests.scenarios import read_scenario
from tests.worlds.generator import FOLDER, text

NUMBER = re.compile(
    r"(?<![\w.\[/-])(?P<number>[-+±]?\d+(?:\.\d+)?(?:[kMG](?![\w]))?)(?P<unit> (?:ms|min|s|h|TB|GB|MB|kB|B|%)(?:/s)?(?!\w)|[kMG]?/s(?!\w))?"
)
ID = re.compile(r"[Cc]heckpoint (?P<id>\d+)(?: of job (?P<job>\d+))?(?: of replication (?P<replication>\d+))?")


def numbers(sentence, names=()):
    """``numbers("takes 5.7 s of 'sink' (busy 99 %)") == ["5.7 s", "99 %"]``; ids of checkpoints and `names` are left out."""
    for name in sorted({name for name in names if name}, key=len, reverse=True):
        sentence = sentence.replace(name, "NAME")
    return [match["number"] + (match["unit"] or "") for match in NUMBER.finditer(ID.sub("CHECKPOINT", sentence))]


@lru_cache(maxsize=4)
def compared(seed):
    """A world under its own barriers and, where it can be, under others, in two replications each; None: it cannot be read."""
    source = text(seed)
    results = []
    for barriers in (None, "unaligned", "aligned"):
        changes = [] if barriers is None else [f"checkpoint.barriers={barriers}"]
        try:
            scenario = read_scenario(source, folder=FOLDER, overrides=changes)
        except ScenarioError:
            continue
        for k in range(2):
            run = replace(scenario.run, seed=scenario.run.seed + k)
            axes = (("checkpoint.barriers", barriers or "own"),)
            results.append(simulate(replace(scenario, run=run, axes=axes), check=False))
    return comparison_of(results) if results else None


def sentences(comparison):
    found = (comparison.verdict, comparison.overload, comparison.consequences_sentence, *comparison.remarks)
    return [sentence for sentence in found if sentence]
