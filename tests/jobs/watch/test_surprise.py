"""Page's test: false alarms are as rare as promised, and a shift is seen soon after it begins."""

import numpy as np

from sim.jobs.watch.forecast import FALSE_ALARM_CHECKPOINTS, LOWER, TAIL, UPPER, ForecastEvidence


def until_sure(line, shares, most=10**6, seed=1):
    """After how many checkpoints it is sure; `shares`: chance to be beyond the line, checkpoint by checkpoint."""
    random = np.random.default_rng(seed)
    found = ForecastEvidence()
    for number, share in zip(range(1, most), shares, strict=False):
        found = found.after(line, number, beyond=random.random() < share)
        if found.is_sure:
            return number, found
    return most, found


def forever(share):
    while True:
        yield share


def test_false_alarms_are_rare():
    """At the share that the forecast allows: on average at most once in so many checkpoints (the bound is Lorden's)."""
    for line in (TAIL, UPPER, LOWER):
        times = [until_sure(line, forever(line.allowed), most=60_000, seed=seed)[0] for seed in range(6)]

        assert np.mean(times) > FALSE_ALARM_CHECKPOINTS, line.name


def test_a_shift_is_seen_soon():
    """All checkpoints beyond p90: within six; beyond p50: within seventeen; and where it began is told."""
    late = [until_sure(TAIL, [0.05] * 200 + [1.0] * 50, seed=seed) for seed in range(20)]

    assert np.quantile([number for number, _ in late], 0.9) < 206
    assert all(195 <= found.since_ms <= 201 for _, found in late)
    assert until_sure(UPPER, [1.0] * 50)[0] < 17
