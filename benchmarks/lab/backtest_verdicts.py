"""How far are predictions of a what-if off?  Each recorded run is imported alone, and predicts other runs of its job.

`python -m benchmarks.lab.backtest_verdicts` prints a row per kind of what-if, from earlier predictions (`what_ifs.csv`).  It says how far
that was off, and how much lies within what the recordings of all other jobs promise.  `--again` predicts everything
anew before that: two to three minutes of processor time.  `--write` keeps the factors in the package and the table in
docs/truth.md.

tests/data/what-ifs.csv names the runs, and what the one has changed of the other.  A recording of our own recorder is
imported from what its REST API claimed, like any other job.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median

import pandas as pd

from benchmarks.advice_kept import durations
from benchmarks.blind import PAGE, ROOT, simulated
from benchmarks.lab.as_answers import as_answers
from benchmarks.lab.envelope_build import replaced
from benchmarks.lab.what_ifs_learned import CrossPrediction, is_covered, is_promised, learned
from sim.jobs.evidence.backtest import NoHistoryError, backtest
from sim.jobs.evidence.prediction import observed
from sim.jobs.evidence.what_ifs import FILE, KINDS, MIN_FACTOR, Kind, Learned, Pair, kinds_of, what_if
from sim.jobs.reading import infer, to_recording
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import OtherSettings
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.results.formats import ms_text

BEGIN, END = "<!-- verdicts: written by `python -m benchmarks.lab.backtest_verdicts --write` -->", "<!-- /verdicts -->"
DATA = ROOT / "tests" / "data"
WHAT_IFS, RESULTS = DATA / "what-ifs.csv", Path(__file__).parent / "what_ifs.csv"
SEEDS = (101, 102, 103)
PAIRS = ("observed_ms", "predicted_ms", "off_by", "history")
COLUMNS = (*((f"{name}_p50", f"{name}_p90") for name in PAIRS), ("observed_bytes", "predicted_bytes"))


@dataclass(frozen=True, slots=True)
class Imported:
    """A recording, imported alone, and what it shows itself."""

    text: str
    observed_ms: Pair
    written: float  # bytes per checkpoint, mean
    length_ms: int
    history: OtherSettings


@cache
def imported(name: str) -> Imported:
    """NoHistoryError: it has no checkpoint to be held to."""
    source = _answers(DATA / name)
    inference = infer(source)
    job = to_recording(source, name)
    found = backtest(job)
    assert found.other_settings is not None
    shown, length_ms = observed(job), int(1000 * job.duration_s)
    return Imported(inference.text, _quantiles(durations(shown)), _written(shown), length_ms, found.other_settings)


def _answers(path: Path) -> RestSnapshot:
    return read_saved(path) if path.suffix == ".zip" else as_answers(path)


def settings(rows: Sequence[Mapping[str, str]]) -> Iterator[CrossPrediction]:
    """What the imports of the first recordings say of the second ones."""
    for row in rows:
        try:
            here, there = imported(row["imported"]), imported(row["predicted"])
        except NoHistoryError as reason:
            print(f"left out: {row['imported']}: {reason}", file=sys.stderr)
            continue
        if not math.isfinite(max(here.history.p50, here.history.p90)):
            print(f"left out: {row['imported']}: its own history is not predicted at all", file=sys.stderr)
            continue
        changes = [change for change in row["changes"].split("; ") if change]
        try:
            base, changed = (loads(here.text, overrides=overrides).scenarios[0] for overrides in ((), changes))
        except ScenarioError as reason:  # e.g. its placement is isolated, and the import has slots
            print(f"left out: {row['imported']}: {reason}", file=sys.stderr)
            continue
        shown = pd.concat(list(simulated(changed, SEEDS, there.length_ms)), ignore_index=True)
        predicted = _quantiles(durations(shown))
        off_by = tuple(factor(*sides) for sides in zip(there.observed_ms, predicted, strict=True))
        history = (here.history.p50, here.history.p90)
        names = (row["family"], row["imported"], row["predicted"])
        written = (there.written, _written(shown))
        yield CrossPrediction(
            *names, kinds_of(base, changed), there.observed_ms, predicted, (off_by[0], off_by[1]), history, written
        )


def factor(there: float, here: float) -> float:
    """By how much two durations [ms] differ; 1 below the noise of a machine."""
    return 1.0 if abs(there - here) < NEGLIGIBLE_MS else max(there, here) / max(min(there, here), 1.0)


def _quantiles(values: pd.Series[float]) -> Pair:
    return float(values.quantile(0.5)), float(values.quantile(0.9))


def _written(shown: pd.DataFrame) -> float:
    """Bytes per checkpoint of the latter half, in the mean: with increments a few have nearly all of them."""
    rows = shown[shown["quantity"] == "checkpointed_size"]
    latter = rows["checkpoint"] >= (rows["checkpoint"].min() + rows["checkpoint"].max()) / 2
    return float(rows.loc[latter, "value"].mean())


def write_results(found: Sequence[CrossPrediction]) -> None:
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            [
                "family",
                "imported",
                "predicted",
                "kinds",
                *(name for pair in COLUMNS for name in pair),
            ]
        )
        for setting in found:
            numbers = [f"{value:.4g}" for name in (*PAIRS, "written") for value in getattr(setting, name)]
            rows.writerow([setting.family, setting.imported, setting.predicted, " ".join(setting.kinds), *numbers])


def read_results(path: Path = RESULTS) -> list[CrossPrediction]:
    with path.open(encoding="utf-8") as file:
        return [
            CrossPrediction(
                row["family"],
                row["imported"],
                row["predicted"],
                tuple(kind for kind in KINDS if kind in row["kinds"].split()),
                *((float(row[one]), float(row[other])) for one, other in COLUMNS),
            )
            for row in csv.DictReader(file)
        ]


def document(found: Sequence[CrossPrediction]) -> str:
    """The text of the file in the package."""
    rows = [{"changes": change, **asdict(row)} for change, row in learned(found).items() if len(change) < 2]
    rounded = [
        {**row, "beyond": [_rounded_up(value) for value in row["beyond"]], "covered": _shares(row["covered"])}
        for row in rows
    ]
    recordings = len({setting.imported for setting in found})
    made_by = "python -m benchmarks.lab.backtest_verdicts --again --write"
    origin = f"{recordings} recordings in tests/data (Apache-2.0, made by this project), paired by what-ifs.csv"
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rounded)
    head = f'  "made by": {json.dumps(made_by)},\n  "from": {json.dumps(origin)},\n'
    return f'{{\n{head}  "what-ifs": [\n{lines}\n  ]\n}}\n'


def _rounded_up(factor: float) -> float | None:
    """None: infinite, which JSON has not."""
    return math.ceil(factor * 1000) / 1000 if math.isfinite(factor) else None


def _shares(covered: Pair | None) -> list[float] | None:
    return None if covered is None else [round(share, 3) for share in covered]


def table(found: Sequence[CrossPrediction]) -> str:
    """Markdown: a row per kind of what-if, and the settings that lie outside."""
    head = [
        "what if",
        "settings",
        "jobs",
        "off by, p50 and p90 (median; worst)",
        "bytes (median; worst)",
        "said: within (median)",
        "within, their job left out",
    ]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [
        _row(change, row, [setting for setting in found if setting.kinds == change])
        for change, row in learned(found).items()
    ]
    promised = [setting for setting in found if is_promised(setting, found)]
    missed = [setting for setting in promised if not all(is_covered(setting, found))]
    nothing = (
        f" For {len(found) - len(promised)} others nothing is promised without their job."
        if len(promised) < len(found)
        else ""
    )
    lines += ["", f"Outside, their job left out: {len(missed)} of {len(promised)}.{nothing}", ""]
    columns = ["imported", "predicted", "what if", "p50, recorded and predicted", "p90, recorded and predicted"]
    lines += [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    return "\n".join([*lines, *(_missed_row(setting) for setting in missed)])


def _row(change: Sequence[Kind], row: Learned, own: Sequence[CrossPrediction]) -> str:
    name = what_if(change) if len(change) < 2 else f"{what_if(change)} at once"
    if not own:
        return f"| {name} | 0 | 0 | – | – | not known | – |"
    sizes = [max(setting.written) / max(min(setting.written), 1.0) for setting in own if setting.written[0] > 0]
    written = f"{median(sizes):.2f}; {max(sizes):.2f}" if sizes else "–"
    off, claimed = [], []
    for level in (0, 1):
        factors = [setting.off_by[level] for setting in own]
        off.append(f"{median(factors):.2f}; {max(factors):.2f}")
        claimed.append(f"{median(max(setting.history[level] * row.beyond[level], MIN_FACTOR) for setting in own):.2f}")
    inside = "nothing is promised" if row.covered is None else ", ".join(f"{share:.0%}" for share in row.covered)
    return (
        f"| {name} | {row.settings} | {row.families} | {', '.join(off)} | {written} | {', '.join(claimed)} | {inside} |"
    )


def _missed_row(setting: CrossPrediction) -> str:
    names = [
        Path(name).name.removesuffix(".zip").removesuffix(".json.gz") for name in (setting.imported, setting.predicted)
    ]
    pairs = [", ".join(map(ms_text, pair)) for pair in zip(setting.observed_ms, setting.predicted_ms, strict=True)]
    return f"| {' | '.join([*names, what_if(setting.kinds), *pairs])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.backtest_verdicts", description=__doc__)
    parser.add_argument("--again", action="store_true", help="predict everything anew")
    parser.add_argument(
        "--write", action="store_true", help="put the factors into the package, and the table into docs/truth.md"
    )
    chosen = parser.parse_args(arguments)
    if chosen.again:
        with WHAT_IFS.open(encoding="utf-8") as file:
            write_results(list(settings(list(csv.DictReader(file)))))
    found = read_results()
    text = table(found)
    print(text)
    if chosen.write:
        FILE.write_text(document(found), encoding="utf-8")
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), f"{BEGIN}\n{text}\n{END}"), encoding="utf-8")


if __name__ == "__main__":
    main()
