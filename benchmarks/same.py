"""Do two checkouts simulate the same, to the byte of every table and journal?

    python -m benchmarks.same OTHER_CHECKOUT [--worlds 100] [--first 1] [--scenarios NAME ...] [--no-recordings]

Both checkouts run the scenarios, recordings and generated worlds of this one, each in a process of its own, side by
side.  The process uses the public names `sim.load` and `sim.simulate` and the commands `import` and `validate`.  What
differs is named: file, scenario, table.  Exit code 1 if anything differs.

Ready scenarios take about four CPU minutes in each checkout, recordings two, a generated world a tenth of a second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NO_ANSWER = "no answer"


def main() -> int:
    """Prints what differs and how much was compared."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("other", type=Path, help="A checkout of another version, whose kernel is warm.")
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="Seed of the first world.")
    parser.add_argument("--scenarios", nargs="*", help="Names of ready scenarios; by default all.")
    parser.add_argument("--no-recordings", action="store_true")
    options = parser.parse_args()
    if not (options.other / "sim").is_dir():
        parser.error(f"{options.other} holds no sim/: expected a checkout")
    with tempfile.TemporaryDirectory(prefix="ckptsim-same-") as place:
        files = _scenarios(options.scenarios) + _worlds(Path(place), options.first, options.worlds)
        recordings = [] if options.no_recordings else sorted((ROOT / "tests" / "data").glob("*/*.json.gz"))
        work = json.dumps({"scenarios": list(map(str, files)), "recordings": list(map(str, recordings))})
        children = [_child(checkout, work, Path(place)) for checkout in (ROOT, options.other.resolve())]
        ours, theirs = (_answers(child) for child in children)
    names = sorted({*ours, *theirs})
    different = [name for name in names if ours.get(name, NO_ANSWER) != theirs.get(name, NO_ANSWER)]
    for name in different:
        print(f"{name}: {ours.get(name, NO_ANSWER)} here, {theirs.get(name, NO_ANSWER)} there")
    print(
        f"{len(files)} scenario files and {len(recordings)} recordings: {len(names)} results compared, {len(different)} differ"
    )
    return 1 if different or not names else 0


def _scenarios(names: list[str] | None) -> list[Path]:
    found = [*sorted((ROOT / "scenarios").glob("*.yaml")), *sorted((ROOT / "scenarios" / "published").glob("*.yaml"))]
    return [path for path in found if names is None or path.stem in names]


def _worlds(folder: Path, first: int, count: int) -> list[Path]:
    """Generated worlds as files, beside the traces that they read, and the worlds that failed once; none if `count` is 0."""
    from tests.worlds.generator import FOLDER, text

    if not count:
        return []
    for path in FOLDER.iterdir():
        shutil.copy(path, folder)
    for seed in range(first, first + count):
        (folder / f"world-{seed}.yaml").write_text(text(seed))
    return sorted(folder.glob("*.yaml"))


def _child(checkout: Path, work: str, folder: Path) -> subprocess.Popen[str]:
    from benchmarks.measure import python_of  # here, since older checkouts read this file with a module of theirs

    given = folder / f"work-{checkout.name}-{len(list(folder.glob('work-*')))}.json"
    given.write_text(work)
    code = f"import runpy; runpy.run_path({str(Path(__file__))!r}, run_name='digests')['digests']({str(given)!r})"
    return subprocess.Popen(
        [python_of(checkout), "-c", code],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
    )


def _answers(child: subprocess.Popen[str]) -> dict[str, str]:
    lines = child.communicate()[0].splitlines()
    if child.returncode:
        raise SystemExit(f"the checkout that runs as process {child.pid} ended with {child.returncode}")
    return dict(json.loads(line) for line in lines if line.startswith("["))


def digests(given: str) -> None:
    """Runs in the checkout whose sim/ is on the path: a line per result."""
    work = json.loads(Path(given).read_text())
    for file in work["scenarios"]:
        for name, content in _results(Path(file)):
            _print(f"{Path(file).stem}: {name}", content)
    for file in work["recordings"]:
        _print(f"{Path(file).name}: import", _command("import", file))
    if work["recordings"]:
        for row in json.loads(_command("validate", "--seeds", "1", "--json", *work["recordings"]) or "[]"):
            _print(
                "validate: " + " ".join(str(value) for value in row.values() if isinstance(value, str)), json.dumps(row)
            )


def _results(file: Path) -> Iterator[tuple[str, str]]:
    import sim

    try:
        scenarios = sim.load(file).scenarios
    except Exception as error:  # noqa: BLE001  a refusal is a result as well
        yield "load", repr(error)
        return
    for number, scenario in enumerate(scenarios):
        try:
            result = sim.simulate(scenario)
        except Exception as error:  # noqa: BLE001
            yield f"{number} simulate", repr(error)
            continue
        for name, table in result.tables.items():
            yield f"{number} {name}", table.to_csv()
        yield f"{number} journal", "".join(json.dumps(entry) + "\n" for entry in result.journal)
        yield f"{number} end", f"{result.job_status} {result.ended_ns} {list(map(str, result.violations))}"


def _command(*arguments: str) -> str:
    program = "benchmarks.lab" if Path("benchmarks/lab").is_dir() else "sim"  # which of them reads recordings
    return subprocess.run(
        [sys.executable, "-m", program, *arguments], capture_output=True, text=True, check=False
    ).stdout


def _print(name: str, content: Any) -> None:
    print(json.dumps([name, hashlib.blake2b(str(content).encode(), digest_size=8).hexdigest()]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
