"""Sums over many worlds: how each key and each wrong strategy fared, what was found, what it cost."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

from sim.model.schema.faults import FAULT_KEYS
from tests.worlds.keys import EXCEPTIONS, all_keys
from tests.worlds.rules import ACTS
from tests.worlds.trial import MET
from tests.worlds.wrong import WRONG

FAULTS = {f"Fault.{key}" for key in FAULT_KEYS} - set(EXCEPTIONS)
MOST_TOLD = 12  # pairs that no world has
ENOUGH = 40  # worlds of a wrong strategy, one of which must be caught


@dataclass(slots=True)
class Tally:
    began: float = field(default_factory=time.monotonic)
    worlds: Counter[str] = field(default_factory=Counter)  # by wrong strategy; "": sound ones
    caught: Counter[str] = field(default_factory=Counter)  # by wrong strategy
    set_in: Counter[str] = field(default_factory=Counter)  # by key
    caught_with: Counter[str] = field(default_factory=Counter)  # by key: wrong worlds that were caught
    findings: dict[str, list[int]] = field(default_factory=dict)  # what was found -> seeds
    sums: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0
    rules: Counter[str] = field(default_factory=Counter)  # worlds in which each acts
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)  # of a key and what goes wrong

    def add(self, result):
        wrong, outcome = result.task.wrong, result.outcome
        caught = wrong != "" and outcome.kind == "violated"
        self.worlds[wrong] += 1
        self.caught[wrong] += caught
        self.set_in.update(result.keys)
        self.pairs.update(product(result.keys, result.keys & FAULTS | outcome.met))
        self.caught_with.update(result.keys if caught else ())
        if result.bad:
            self.findings.setdefault(outcome.finding, []).append(result.task.seed)
        self.sums.update(
            restarts=outcome.restarts,
            checkpoints=outcome.completed,
            commits=outcome.commits,
            compared=result.task.compare,
            simulated_s=outcome.simulated_ns // 10**9,
        )
        self.rules.update(outcome.rules)
        self.cpu_s += outcome.cpu_s

    @property
    def missed(self):
        """Wrong strategies that had their chance and were never caught."""
        return [name for name in WRONG if self.worlds[name] >= ENOUGH and not self.caught[name]]

    def lines(self):
        yield "key, worlds that set it, worlds caught with it when a rule is broken"
        for key in sorted(all_keys() - set(EXCEPTIONS)):
            yield f"  {key:45} {self.set_in[key]:7} {self.caught_with[key]:7}"
        yield "wrong strategy, worlds, caught"
        for name in WRONG:
            yield f"  {name:70} {self.worlds[name]:7} {self.caught[name]:7}{'  NEVER CAUGHT' if name in self.missed else ''}"
        yield "rule, worlds in which it acts"
        for rule in ACTS:
            yield f"  {rule:70} {self.rules[rule]:7}"
        yield self.missing_pairs()
        yield from self.found()
        done = sum(self.worlds.values())
        yield ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in self.sums.items())
        yield (
            f"{done} worlds, {self.worlds['']} of them sound, in {time.monotonic() - self.began:.0f} s; "
            f"CPU {self.cpu_s:.0f} s, {1000 * self.cpu_s / max(1, done):.0f} ms per world"
        )

    def missing_pairs(self):
        """Which keys have met which faults in no world."""
        keys = sorted(all_keys() - set(EXCEPTIONS))
        faults = [*sorted(FAULTS), *MET]
        missing = [pair for pair in product(keys, faults) if not self.pairs[pair]]
        listed = "; ".join(f"{key} and {fault}" for key, fault in missing[:MOST_TOLD])
        return f"{len(keys) * len(faults)} pairs of key and fault, {len(missing)} of them in no world: {listed}"

    def found(self):
        yield f"findings: {sum(map(len, self.findings.values()))} worlds, {len(self.findings)} kinds"
        for finding, seeds in sorted(self.findings.items(), key=lambda pair: -len(pair[1])):
            yield f"  {len(seeds)} x {finding} (seeds {', '.join(map(str, seeds[:3]))})"
