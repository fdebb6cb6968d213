"""Sums over many worlds: how each key and each wrong strategy fared, what was found, what it cost."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from tests.worlds.broken import BROKEN
from tests.worlds.keys import EXCEPTIONS, all_keys
from tests.worlds.pairs import FAULTS, MET, Pairs
from tests.worlds.wrong import WRONG

ENOUGH = 40  # worlds of a wrong strategy, one of which must be caught


@dataclass(slots=True)
class Tally:
    began: float = field(default_factory=time.monotonic)
    worlds: Counter[str] = field(default_factory=Counter)  # by wrong strategy or break; "": sound ones
    caught: Counter[str] = field(default_factory=Counter)  # by wrong strategy or break
    set_in: Counter[str] = field(default_factory=Counter)  # by key
    caught_with: Counter[str] = field(default_factory=Counter)  # by key: wrong and broken worlds that were caught
    findings: dict[str, list[int]] = field(default_factory=dict)  # what was found -> seeds
    sums: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0
    pairs: Pairs = field(default_factory=lambda: Pairs((*FAULTS, *MET)))

    def add(self, result):
        wrong, outcome = result.task.wrong, result.outcome
        # an error is noticed as well
        noticed = ("violated", "crash", "unaccounted") if wrong in BROKEN else ("violated",)
        caught = wrong != "" and outcome.kind in noticed
        self.worlds[wrong] += 1
        self.caught[wrong] += caught
        self.set_in.update(result.keys)
        self.pairs.add(result.features, result.faults)
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
        self.cpu_s += outcome.cpu_s

    @property
    def missed(self):
        """Wrong strategies that had their chance and were never caught."""
        return [name for name in WRONG if self.worlds[name] >= ENOUGH and not self.caught[name]]

    def lines(self):
        yield "key, worlds that set it, worlds caught with it when a rule is broken"
        for key in sorted(all_keys() - set(EXCEPTIONS)):
            yield f"  {key:45} {self.set_in[key]:7} {self.caught_with[key]:7}"
        yield "wrong strategy or broken runtime, worlds, caught"
        for name in [*WRONG, *BROKEN]:
            yield f"  {name:70} {self.worlds[name]:7} {self.caught[name]:7}{'  NEVER CAUGHT' if name in self.missed else ''}"
        yield from self.pairs.lines()
        yield from self.found()
        done = sum(self.worlds.values())
        yield ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in self.sums.items())
        yield (
            f"{done} worlds, {self.worlds['']} of them sound, in {time.monotonic() - self.began:.0f} s; "
            f"CPU {self.cpu_s:.0f} s, {1000 * self.cpu_s / max(1, done):.0f} ms per world"
        )

    def found(self):
        yield f"findings: {sum(map(len, self.findings.values()))} worlds, {len(self.findings)} kinds"
        for finding, seeds in sorted(self.findings.items(), key=lambda pair: -len(pair[1])):
            yield f"  {len(seeds)} x {finding} (seeds {', '.join(map(str, seeds[:3]))})"
