"""Do the constants hold for other recordings?  Leave a recording out, estimate again, predict it.

For each recording there are three sets of constants: from all recordings, from all others, and from all other families.
A constant that no other family tells comes from all other recordings.  One that no other recording tells keeps its
default.  Estimating is cheap; the caller simulates, each different run once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from benchmarks.lab.calibration.estimate import Votes, calibrated, estimates
from benchmarks.lab.calibration.estimators import CONSTANTS
from sim.jobs.evidence.prediction import summary
from sim.model.scenario import Overheads

WAYS = ("all", "without the recording", "without the family")
"""The recordings that the constants of a prediction come from."""

_FAMILY, _RECORDING, _DEFAULT = "the other families", "the other recordings of its family", "no recording"


class RecordingVotes(NamedTuple):
    """The constants that a recording tells."""

    recording: str
    family: str
    votes: Votes


@dataclass(frozen=True, slots=True)
class Fit:
    """The constants for a recording, each way, and the sources of the last way."""

    recording: str
    overheads: tuple[Overheads, Overheads, Overheads]  # in the order of WAYS
    sources: Mapping[str, str]  # constant -> source


class Prediction(NamedTuple):
    """A prediction: the recording's index in the list, and the constants."""

    place: int
    overheads: Overheads


def fits(votes: Sequence[RecordingVotes], default: Overheads | None = None) -> list[Fit]:
    """A fit per recording, in their order."""
    everything = calibrated(estimates([vote.votes for vote in votes], default=default), default)
    return [_fit(votes, i, everything, default) for i in range(len(votes))]


def _fit(votes: Sequence[RecordingVotes], left_out: int, everything: Overheads, default: Overheads | None) -> Fit:
    this = votes[left_out]
    others = [vote.votes for i, vote in enumerate(votes) if i != left_out]
    strangers = [vote.votes for vote in votes if vote.family != this.family]
    sources = {name: _source(name, others, strangers) for name in CONSTANTS}
    # a single vote is enough: the default may come from the very recording that is left out
    by_source = {
        _DEFAULT: estimates([], default=default),
        _RECORDING: estimates(others, at_least=1, default=default),
        _FAMILY: estimates(strangers, at_least=1, default=default),
    }
    mixed = {name: by_source[source][name] for name, source in sources.items()}
    return Fit(
        this.recording, (everything, calibrated(by_source[_RECORDING], default), calibrated(mixed, default)), sources
    )


def _source(name: str, others: Iterable[Votes], strangers: Iterable[Votes]) -> str:
    if any(name in votes for votes in strangers):
        return _FAMILY
    return _RECORDING if any(name in votes for votes in others) else _DEFAULT


def runs(fitted: Sequence[Fit]) -> list[Prediction]:
    """Every necessary prediction, without duplicates: equal constants share one."""
    return list(dict.fromkeys(Prediction(i, overheads) for i, fit in enumerate(fitted) for overheads in fit.overheads))


def errors(fitted: Sequence[Fit], predicted: Mapping[Prediction, pd.DataFrame]) -> pd.DataFrame:
    """Per quantity: recordings, rows, and for each of WAYS the median and the 90 % quantile of the error (`summary.summary`).

    `predicted`: the truth tables of `runs`; recordings without a prediction are left out.
    """
    ways = []
    for k in range(len(WAYS)):
        tables = [
            predicted[run] for i, fit in enumerate(fitted) if (run := Prediction(i, fit.overheads[k])) in predicted
        ]
        ways.append(summary(pd.concat(tables, ignore_index=True)).set_index("quantity"))
    columns = {f"{way}: {name}": off[name] for way, off in zip(WAYS, ways, strict=True) for name in ("median", "p90")}
    return ways[0][["recordings", "rows"]].assign(**columns).reset_index()


def sources(fitted: Sequence[Fit]) -> list[tuple[str, str, int]]:
    """(constant, its source without the family, number of recordings)."""
    counted = {name: Counter(fit.sources[name] for fit in fitted) for name in CONSTANTS}
    return [(name, source, count) for name, counts in counted.items() for source, count in counts.most_common()]
