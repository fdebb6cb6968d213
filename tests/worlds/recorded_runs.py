"""What known worlds bring about, as digests of every table: `python -m tests.worlds.recorded_runs` writes them again.

One digest notices what many examples would: any change of what a run does.  Whether a change is right, other tests say;
`python -m benchmarks.same CHECKOUT` shows where two versions differ.
"""

import hashlib
import json

from sim.runtime.simulate import simulate
from tests.scenarios import read_scenario
from tests.worlds.generator import FOLDER

RECORDED = FOLDER.parent / "recorded-runs.json"
WORLDS = sorted(file.stem for file in FOLDER.glob("*.yaml"))


def compute_digests(world):
    """A digest of each table of the run of a world, of its journal and of its end."""
    scenario = read_scenario((FOLDER / f"{world}.yaml").read_text(), folder=FOLDER)
    result = simulate(scenario)
    contents = {name: table.to_csv() for name, table in result.tables.items()}
    contents["journal"] = json.dumps(list(result.journal))
    contents["end"] = f"{result.job_status} {result.ended_ns} {list(map(str, result.violations))}"
    return {name: hashlib.blake2b(content.encode(), digest_size=4).hexdigest() for name, content in contents.items()}


if __name__ == "__main__":
    rows = (f"{json.dumps(world)}: {json.dumps(compute_digests(world), sort_keys=True)}" for world in WORLDS)
    RECORDED.write_text("{\n" + ",\n".join(rows) + "\n}\n")
