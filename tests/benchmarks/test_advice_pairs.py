"""`ckptsim advise` recommends what another recording shows to be better, and predicts its numbers."""

import pytest

from benchmarks.advice import PAIRS, RECORDINGS, judged


@pytest.mark.slow
def test_the_other_recording_knows_better():
    """Barriers of a join whose one side is slow: unaligned ones are advised, for their checkpoints are short, there and here."""
    pair = next(candidate for candidate in PAIRS if candidate.today == "join-fastslow-aligned")
    lines, is_right = judged(pair, RECORDINGS)

    assert is_right
    p50 = next(line.split() for line in lines[-1].splitlines() if line.startswith("checkpoint p50"))
    assert p50[3::2] == ["ms", "ms"]
    assert abs(float(p50[2]) - float(p50[4])) < 60


def test_every_pair_is_there():
    assert [
        name for pair in PAIRS for name in (pair.today, pair.better) if not (RECORDINGS / f"{name}.json.gz").exists()
    ] == []
