"""Whether the answers of sweeps keep what they print: studies with a known truth, and how often each kind of answer is right.

`python -m benchmarks.coverage` prints two tables: the coverage of 95 % intervals in 400 studies, and how often a winner is named among
settings with equal true means, in 20,000 studies.  A study is made up by numpy: no job is simulated.  Windows have an
effect that is common to all settings, seeds repeat within windows, and what `ckptsim sweep` uses computes the answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.results.sweep_answers import choose, differences, is_significantly_worse, joint_confidence, means

__all__ = ["COVERED", "NULL", "Study", "covered", "main", "winners"]

Floats = NDArray[np.float64]
COLUMN, SETTING = "caught_up_ms", "checkpoint.interval"


@dataclass(frozen=True)
class Study:
    """Settings x windows x seeds with known means."""

    name: str
    settings: int
    windows: int
    seeds: int = 1
    apart: float = 0.0  # true difference between a setting and the one before it
    window_effect: float = 10.0  # standard deviation, common to all settings
    interaction: float = 2.0  # standard deviation of what a window does to one setting
    noise: float = 1.0  # of seeds within a window
    bound: float = np.inf  # where runs end: what takes longer is unfinished
    is_heavy: bool = False  # interactions with Student's t of 3 degrees of freedom instead of normal ones

    def draw(self, chance: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """(windows x settings x seeds, which of them are bounds)."""
        shape = (self.windows, self.settings, 1)
        heavy = chance.standard_t(3, shape) / np.sqrt(3) if self.is_heavy else chance.standard_normal(shape)
        values = (
            100
            + self.apart * np.arange(self.settings)[None, :, None]
            + self.window_effect * chance.standard_normal((self.windows, 1, 1))
            + self.interaction * heavy
            + self.noise * chance.standard_normal((self.windows, self.settings, self.seeds))
        )
        return np.minimum(values, self.bound), values > self.bound

    def truth(self, setting: int) -> float:
        """The mean, restricted to the bound."""
        mean = 100 + self.apart * setting
        if np.isinf(self.bound):
            return mean
        from scipy.stats import norm

        spread = float(np.sqrt(self.window_effect**2 + self.interaction**2 + self.noise**2))
        z = (self.bound - mean) / spread
        return float(self.bound - spread * (z * norm.cdf(z) + norm.pdf(z)))


def table_of(study: Study, chance: np.random.Generator) -> pd.DataFrame:
    """The rows that a sweep would have."""
    values, unfinished = study.draw(chance)
    order = product(range(study.windows), range(study.settings), range(study.seeds))
    windows, settings, seeds = (list(numbers) for numbers in zip(*order, strict=True))
    return pd.DataFrame(
        {
            "cell": "c",
            "scenario": "s",
            "replication": seeds,
            "seed": seeds,
            "window": [f"{window}" for window in windows],
            SETTING: [f"{setting} s" for setting in settings],
            "strategy": "aligned",
            "status": "ok",
            "job_status": "RUNNING",
            COLUMN: values.ravel(),
            "unfinished": np.where(unfinished.ravel(), COLUMN, ""),
            "nothing": "",
        }
    )


def _mean(study: Study, rows: pd.DataFrame) -> Iterator[bool]:
    found = means(rows, [SETTING], [COLUMN])
    for setting in range(study.settings):
        row = found.loc[f"{setting} s"]
        yield bool(abs(row[COLUMN] - study.truth(setting)) <= row[f"{COLUMN} ±"])


def _differences(study: Study, rows: pd.DataFrame) -> Iterator[bool]:
    """All of them hold, or the study misses."""
    found = differences(rows, [SETTING], COLUMN, {SETTING: "0 s"})
    true = np.array([study.truth(setting) - study.truth(0) for setting in range(study.settings)])
    yield bool((np.abs(found["difference"].to_numpy() - true) <= found["±"].to_numpy() + 1e-12).all())


def _set(study: Study, rows: pd.DataFrame) -> Iterator[bool]:
    """No setting whose true mean is the least is left out."""
    least = min(study.truth(setting) for setting in range(study.settings))
    equal = {(f"{setting} s",) for setting in range(study.settings) if study.truth(setting) <= least + 1e-12}
    yield equal <= set(choose(rows, [SETTING], COLUMN).best)


COVERED: tuple[tuple[str, Callable[[Study, pd.DataFrame], Iterator[bool]], Study], ...] = (
    ("mean", _mean, Study("2 settings x 10 windows", 2, 10)),
    ("mean", _mean, Study("3 x 8, 5 seeds", 3, 8, 5)),
    ("mean", _mean, Study("2 x 5, heavy tails", 2, 5, is_heavy=True)),
    ("paired difference", _differences, Study("2 x 5", 2, 5, apart=3)),
    ("paired difference", _differences, Study("2 x 8, 5 seeds", 2, 8, 5, apart=3)),
    ("paired differences together", _differences, Study("6 x 10", 6, 10, apart=1)),
    ("restricted mean", _mean, Study("2 x 12, a third unfinished", 2, 12, bound=104.5)),
    (
        "restricted difference",
        _differences,
        Study("2 x 12, a third unfinished", 2, 12, apart=3, interaction=6, bound=106),
    ),
    ("set", _set, Study("2 equal x 5", 2, 5)),
    ("set", _set, Study("2 equal x 10, 5 seeds", 2, 10, 5)),
    ("set", _set, Study("3 equal x 10", 3, 10)),
    ("set", _set, Study("20 equal x 10", 20, 10)),
)
NULL: tuple[Study, ...] = (
    Study("2 settings x 5 windows", 2, 5),
    Study("2 x 10", 2, 10),
    Study("2 x 2, 20 seeds", 2, 2, 20),
    Study("20 x 10", 20, 10),
    Study("2 x 10, heavy tails", 2, 10, is_heavy=True),
    Study("2 x 10, windows differ much", 2, 10, window_effect=1000),
    Study("2 x 8, 5 seeds", 2, 8, 5),
    Study("2 x 10, a third unfinished", 2, 10, interaction=6, bound=106),
    Study("5 x 10, a third unfinished", 5, 10, interaction=6, bound=106),
)


def covered(check: Callable[[Study, pd.DataFrame], Iterator[bool]], study: Study, count: int, seed: int) -> float:
    """The share of answers that hold the truth."""
    chance = np.random.default_rng(seed)
    return float(np.mean([is_right for _ in range(count) for is_right in check(study, table_of(study, chance))]))


def winners(study: Study, count: int, seed: int) -> tuple[float, float]:
    """(share of studies that name a winner, that leave any setting out), of settings that are all equal."""
    chance = np.random.default_rng(seed)
    named, left_out = 0, 0
    for _ in range(count):
        values, unfinished = study.draw(chance)
        bound = np.broadcast_to(values.max(axis=1, keepdims=True), values.shape)
        scores, is_open = np.where(unfinished, bound, values).mean(axis=2), unfinished.any(axis=2)
        kept = ~is_significantly_worse(scores, is_open, joint_confidence(scores.shape[1])).any(axis=1)
        named, left_out = named + (kept.sum() == 1), left_out + (not kept.all())
    return named / count, left_out / count


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--null-studies", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    print(f"{'95 % intervals':30} {f'{given.studies} studies each':34} hold the truth in")
    for kind, check, study in COVERED:
        print(f"{kind:30} {study.name:34} {100 * covered(check, study, given.studies, given.seed):.1f} %", flush=True)
    print(f"\n{'equal settings':30} {f'{given.null_studies} studies each':34} name a winner in, leave any out in")
    for study in NULL:
        named, left_out = winners(study, given.null_studies, given.seed)
        error = (named * (1 - named) / given.null_studies) ** 0.5  # of the share itself: 0.15 % for 20,000 studies
        print(f"{'':30} {study.name:34} {100 * named:.1f} % ± {100 * error:.1f} %, {100 * left_out:.1f} %", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
