"""What random worlds are drawn with: choices, times and laws as they are written in a scenario file."""

from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Document = dict[str, Any]


class Draw(Random):
    """A stream of random choices; the same seed chooses the same."""

    def chance(self, share):
        return self.random() < share

    def pick(self, *options):
        return self.choice(options)

    def subset(self, options, most):
        """One to `most` of them, in their order."""
        chosen = self.sample(range(len(options)), min(len(options), self.randint(1, most)))
        return [options[i] for i in sorted(chosen)]

    def ms(self, low, high):
        return f"{self.randint(low, high)} ms"

    def section(self, share, **keys):
        """Each key with a probability of `share`: most worlds set few keys, some set many."""
        return {key.replace("_", "-"): value() for key, value in keys.items() if self.chance(share)}

    def duration_law(self, mean):
        """A constant half of the time."""
        if self.chance(0.5):
            return mean
        kind = self.pick("exponential", "uniform", "lognormal", "erlang", "shifted-exponential")
        return {kind: mean} if kind in ("exponential", "uniform") else {kind: {"mean": mean, "cv": self._cv(kind)}}

    def size_law(self, mean):
        """A constant most of the time."""
        if self.chance(0.7):
            return mean
        kind = self.pick("exponential", "uniform", "lognormal", "erlang")
        return {kind: mean} if kind in ("exponential", "uniform") else {kind: {"mean": mean, "cv": self._cv(kind)}}

    def fault_law(self, mean):
        kind = self.pick("constant", "exponential", "exponential", "lognormal")
        if kind == "constant":
            return mean
        return {kind: {"mean": mean, "cv": 2} if kind == "lognormal" else mean}

    def _cv(self, kind):
        return self.pick(0.1, 0.5, 1, 3) if kind == "lognormal" else self.pick(0.3, 0.5, 1)


def rescales(world):
    """All of them: one alone stands without a list."""
    given = world.get("rescale", [])
    return given if isinstance(given, list) else [given]


def resized(world):
    """The vertices that some rescale names."""
    return {name for row in rescales(world) for name in row["parallelism"]}
