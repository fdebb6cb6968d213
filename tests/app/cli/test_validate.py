"""``ckptsim validate``: jobs that were measured, of which no configuration is known."""

import json
import re

from sim.jobs import reading
from tests.places import USERS

OF_THE_LAB = USERS.parent / "recordings" / "p2-severe-aligned.json.gz"


def test_a_folder_of_saved_answers_is_compared_quantity_by_quantity(ckptsim, tmp_path):
    """Orderings of runs and bars of accuracy are those of the lab."""
    for name in ("J4-pressed-aligned-r1", "J4-pressed-unaligned-r1", "J2-count-aligned"):
        (tmp_path / f"{name}.zip").write_bytes((USERS / f"{name}.zip").read_bytes())
    done = ckptsim(f"validate {tmp_path} --seeds 1 --jobs 1")

    assert done.exit_code == 0
    assert re.search(r"^J4-pressed-unaligned-r1 +end_to_end_duration", done.stdout, re.MULTILINE)
    assert not any(line.endswith((" right", " WRONG")) for line in done.stdout.splitlines())


def test_json_is_a_list_of_rows_and_what_is_not_read_is_named(ckptsim, tmp_path, monkeypatch):
    """A recording of this project's own recorder is none of a user's; another tool reads it."""
    monkeypatch.setattr(reading, "FORMATS", {})
    done = ckptsim("validate", USERS / "J2-count-aligned.zip", OF_THE_LAB, "--seeds", "1", "--jobs", "1", "--json")
    (skipped,) = done.stderr.splitlines()

    assert done.exit_code == 4
    assert {"J2-count-aligned"} == {row["recording"] for row in json.loads(done.stdout)}
    assert skipped.startswith(
        f"skipped: {OF_THE_LAB}: has the format 'flink-lab/1', which ckptsim does not read: expected saved REST answers, "
    )
    assert skipped.endswith("(for recordings of this project: python -m benchmarks.lab)")
