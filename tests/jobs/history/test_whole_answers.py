"""All that `explain` says of real jobs, logs and single answers, word for word, in 80 columns.

`python -m tests.jobs.history.test_whole_answers` writes it anew.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import benchmarks.lab  # noqa: F401 - some recordings are the lab's
from sim.explain.explanation import WIDTH
from sim.jobs.history.explanation import answer, answer_text, plain
from sim.jobs.history.reading import history_of, history_of_answer
from sim.jobs.reading import read_source
from sim.jobs.source.saved import read_lone_answer, read_saved
from tests.jobs.history.test_paths_of_statistics import RECORDINGS
from tests.places import DATA, REST, ROOT

PLANTED = {
    "cold": (None, 1),
    "paused": (27,),
    "savepoint": (18, 19),
    "recovery": (41,),
    "disk": (13,),
    "expired": (33,),
    "declined": (48,),
    "channel": (60,),
    **dict.fromkeys(("hot", "storm", "window", "sink"), (None,)),
}
"""Cause -> the checkpoints that have it, or None for the whole history (`tests/data/planted/README.md`)."""
SOURCES = [
    *((name, None) for name in RECORDINGS),
    *((f"planted/{name}.zip", checkpoint) for name, checkpoints in PLANTED.items() for checkpoint in checkpoints),
    ("users-jobs/J4-pressed-aligned-r1.zip", 22),
    ("recordings/fail-recover-hashmap160-aligned.json.gz", 6),
    ("users-jobs/R7-cores-aligned.zip", None),
    ("rest/jobmanager.log", None),
    ("rest/pressed.zip", None),
    ("reports/br10a/jobmanager.log", None),
    ("reports/br10a/jobmanager-mixed.log", None),
]
SNAPSHOT = read_saved(REST / "pressed.zip")
LONE = {
    "job": f"/jobs/{SNAPSHOT.job}",
    "checkpoints": f"/jobs/{SNAPSHOT.job}/checkpoints",
    "config": f"/jobs/{SNAPSHOT.job}/checkpoints/config",
    "details": next(path for path in SNAPSHOT.answers if "/details/" in path and "subtasks" not in path),
    "subtasks": min(path for path in SNAPSHOT.answers if "/details/75/subtasks/2e58" in path),
}
CASES = {
    f"{Path(name).name.partition('.')[0]}-{checkpoint or 'all'}": (name, checkpoint) for name, checkpoint in SOURCES
}


def told(history, checkpoint=None):
    found = answer(history, checkpoint)
    text = answer_text(found)
    record = plain(found)
    assert max(map(len, text.splitlines())) <= WIDTH
    for part in record["explained"]:
        assert not part["parts"] or part["duration_ns"] == sum(row["duration_ns"] for row in part["parts"])
    return f"{text}\n\n{json.dumps(record, indent=1, ensure_ascii=False)}\n"


def told_of_lone(name, folder):
    (Path(folder) / f"{name}.json").write_text(json.dumps(SNAPSHOT.answers[LONE[name]]))
    return told(history_of_answer(read_lone_answer(Path(folder) / f"{name}.json")))


def kept(name):
    return DATA / "answers" / f"{name}.txt"


@pytest.mark.parametrize("case", CASES)
def test_word_for_word(case):
    source, checkpoint = CASES[case]
    assert kept(case).read_text() == told(history_of(read_source([DATA / source])), checkpoint)


@pytest.mark.parametrize("name", LONE)
def test_single_answers_word_for_word(tmp_path, name):
    assert kept(f"lone-{name}").read_text() == told_of_lone(name, tmp_path)


def test_the_guide_shows_what_is_printed():
    page = (ROOT / "docs" / "your-own-job.md").read_text()
    excerpt = page.partition("```\nCheckpoint 22")[2].partition("```")[0]

    assert excerpt
    assert f"Checkpoint 22{excerpt}" in kept("J4-pressed-aligned-r1-22").read_text()


if __name__ == "__main__":
    kept("x").parent.mkdir(exist_ok=True)
    for case, (source, checkpoint) in CASES.items():
        kept(case).write_text(told(history_of(read_source([DATA / source])), checkpoint))
    with TemporaryDirectory() as folder:
        for name in LONE:
            kept(f"lone-{name}").write_text(told_of_lone(name, folder))
    sys.stdout.write(f"{len(CASES) + len(LONE)} answers\n")
