"""An hour of looks at a server that means harm: memory and requests are bounded, and the watch goes on."""

import gc
import random
import sys
import tracemalloc

import pytest

from sim.app.verbs.watch import MAX_REQUESTS, watch
from tests.app.cli.hostile import MODES, SECRET, turn
from tests.jobs.watch.conftest import Heard, PlayedFlink

QUICK = [
    "deep",
    "huge numbers",
    "negative counters",
    "texts for numbers",
    "numbers for texts",
    "a web page",
    "cycles",
    "names that paint",
    "an error of wrong types",
    "names with secrets",
    "one vertex many times",
    "keys given twice",
    "checkpoints of any number",
    "half a character",
    "status 401",
    "status 500 for the job",
    "vertices of checkpoints that climb",
    "[] for everything",
    "None in lists",
    "UTF-16",
    "nothing",
    "NaN and Infinity",
]
"""Modes that do not wait on purpose."""
pytestmark = pytest.mark.xdist_group("soak")


class Moody(PlayedFlink):
    """It answers well every third look, and else in some bad way."""

    def __init__(self, seed):
        super().__init__()
        self.right, self.random, self.moods = self.answer, random.Random(seed), []

    def change_mood(self):
        self.answer = self.right
        if self.random.random() < 2 / 3:
            self.moods.append(self.random.choice(QUICK))
            turn(self, self.moods[-1])


@pytest.fixture(scope="module")
def hour(tmp_path_factory):
    """(server, what was said, folder, requests of each look, peak of memory while looks of the second half went on)."""
    fake, heard, folder, per_look, peaks = Moody(3), Heard(), tmp_path_factory.mktemp("soak") / "watch", [], []
    options = {"folder": folder, "every": "120 s", "duration": "60 min", "sample": "0 s"}
    before = 0

    def turn_over(seconds):
        nonlocal before
        if seconds < 20:  # a pause between two attempts
            return
        per_look.append(len(fake.requests) - before)
        before = len(fake.requests)
        gc.collect()  # the command collects rarely, and sets that for all that runs after it in a process
        peaks.append(tracemalloc.get_traced_memory()[0])
        fake.change_mood()

    fake.clock.then = turn_over
    tracemalloc.start()
    try:
        watch(fake.url, listener=heard, clock=fake.clock, **options)
    finally:
        tracemalloc.stop()
        fake.server.shutdown()
        fake.server.server_close()
    return fake, heard, folder, per_look, peaks


def test_the_modes_are_there():
    assert set(QUICK) <= set(MODES)


@pytest.mark.slow
@pytest.mark.nightly
def test_requests_and_memory_are_bounded(hour):
    """No look asks more than it may, and the second half of the hour takes no more memory than the first."""
    fake, heard, _, per_look, peaks = hour
    half = len(peaks) // 2
    requests = f"{len(per_look)} looks in {len(set(fake.moods))} moods: {max(per_look)} requests at most, {sum(per_look)} in all"
    memory = f"{max(peaks[:half]) / 1e6:.1f} MB held in the first half, {max(peaks[half:]) / 1e6:.1f} MB in the second"
    sys.stdout.write(f"{requests}; {memory}; {len(heard.events)} events\n")

    assert len(per_look) >= 30
    assert max(per_look) <= MAX_REQUESTS
    assert sum(per_look) < 30 * 200
    assert max(peaks[half:]) < max(peaks[:half]) + 3e6


@pytest.mark.slow
@pytest.mark.nightly
def test_nothing_paints_and_no_secret_is_kept(hour):
    """In what is said, in the folder, on the page."""
    _, heard, folder, _, _ = hour
    for event in heard.events:
        assert event.text.isprintable(), event.text
    for file in folder.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file


@pytest.mark.slow
@pytest.mark.nightly
def test_it_watches_on(hour):
    """The job is known, its good looks are kept, and the file of metrics is whole."""
    fake, heard, folder, _, _ = hour

    assert "forecast" in heard.kinds()
    assert (folder / "ckptsim.prom").read_text().endswith("# EOF\n")
    assert {"away", "answers"} <= set(heard.kinds())
    assert len(fake.moods) > 15
