"""Long checkpoints that come in a rhythm: found without a name, not found in noise, and silent where the job's plan has a name for it."""

import numpy as np
import pytest

from sim.jobs.history.causes import unexplained_period
from sim.jobs.history.history import split
from sim.jobs.history.in_common import in_common
from sim.jobs.infer.windows import find_period

S = 1000


def played(period_s, seed, count=60, apart_s=5.0, busy=0.3):
    """Times and durations: checkpoints that begin while something fires are three times as long."""
    random = np.random.default_rng(seed)
    times = np.arange(count) * apart_s * S + random.uniform(0, 50, count)
    firing = (times % (period_s * S)) < busy * period_s * S if period_s else np.zeros(count, bool)
    return times, random.normal(200, 15, count) + 400 * firing


@pytest.mark.parametrize("period_s", [13.0, 31.0, 70.0])
def test_a_rhythm_is_found(period_s):
    found = find_period(*played(period_s, seed=7))

    assert found.p < 0.01
    assert found.period_ms == pytest.approx(period_s * S, rel=0.03)


def test_a_rhythm_faster_than_checkpoints_is_among_those_that_look_the_same():
    """Seven seconds, seen every five: as if it were every 17.5 s."""
    found = find_period(*played(7.0, seed=3))

    assert found.p < 0.01
    assert found.period_ms == pytest.approx(17.5 * S, rel=0.03)
    assert found.aliases_ms[0] == pytest.approx(7 * S, rel=0.03)


def test_noise_has_a_rhythm_as_seldom_as_is_said():
    """All periods are tried, and p allows for that: one in twenty is below 0.05."""
    below = [find_period(*played(0, seed)).p < 0.05 for seed in range(100)]

    assert 0 <= sum(below) <= 12


def test_few_or_equal_checkpoints_have_none():
    times, durations = played(13.0, seed=1)

    assert find_period(times[:10], durations[:10]) is None
    assert find_period(times, [200.0] * len(times)) is None


def test_windows_without_a_name_are_found_in_a_recording(recorded, monkeypatch):
    """The plan names windows of 11 s; without it the durations alone tell of 11 s."""
    history = recorded("users-jobs/R2-burst11-aligned.zip")

    assert unexplained_period(history) is None
    unexplained_period.cache_clear()
    monkeypatch.setattr("sim.jobs.history.causes.periodic_p_values", lambda _history: ())
    known = split(history)
    texts = [finding.text for finding in in_common(history, known.slow, known.others).findings]
    unexplained_period.cache_clear()

    assert any(text.startswith("long checkpoints come every 11 s (9.1") for text in texts)
