"""Bootstrap samples."""

import numpy as np

from sim.results.estimates import resamples


def test_places_are_drawn_with_replacement():
    """Each row draws from all places; a place may come twice, so that some do not come at all."""
    samples = resamples(5, times=200, seed=3)

    assert samples.shape == (200, 5)
    assert {0, 1, 2, 3, 4} == set(samples.ravel().tolist())
    assert any(len(set(sample)) < 5 for sample in samples.tolist())


def test_the_seed_decides():
    """The samples are those that numpy's `choice` draws one after the other: results of older versions stay."""
    random = np.random.default_rng(7)
    expected = [random.integers(11, size=11).tolist() for _ in range(20)]

    assert expected == resamples(11, times=20, seed=7).tolist()
    assert np.random.default_rng(7).choice(np.arange(11), size=(20, 11)).tolist() == expected
