"""Each sentence of `ckptsim diff` has a template, and holds of the two files and of the rows of all runs, counted here anew."""

import math
import random
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from ruamel.yaml import YAML
from scipy.stats import t as student

from sim.app.verbs.diff import diff
from sim.model.schema.study import loads
from sim.results.columns import Population
from sim.results.columns import text as value_text
from sim.results.summary import STATISTICS
from sim.studies import effects
from sim.studies.differences import InputChange
from sim.studies.effects import LEADING, quantities, trouble
from tests.claims.printed import Template, always, check, weak_sentences


def yaml_of(text):
    return YAML(typ="safe", pure=True).load(text)


JOB = """\
version: 1
job:
  src: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  map: {input: {src: hash}, service: 1 ms, state: {size: 1 MB}, parallelism: 2}
  sink: {input: {map: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s}
run: {duration: 4 s}
"""
PAIRS = {
    "no checkpoints": {"interval: 1 s": "interval: off"},
    "none completes": {
        "interval: 1 s": "interval: 1 s, timeout: 50 ms, tolerable-failed: 100",
        "size: 1 MB": "size: 100 MB",
    },
    "none ends": {"size: 1 MB": "size: 2 GB"},
    "output waits": {"sink: {": "sink: {commit: two-phase, "},
    "nothing happens": {"interval: 1 s": "interval: 1 s, timeout: 9 min"},
    "many": {
        "200/s": "400/s",
        "400 B": "500 B",
        "service: 1 ms, state": "service: 2 ms, state",
        "size: 1 MB": "size: 2 MB",
        "interval: 1 s": "interval: 2 s, min-pause: 100 ms",
        "bandwidth: 100 MB/s": "bandwidth: 50 MB/s",
    },
    "windows": {"state: {size: 1 MB}": "window: {tumbling: 2 s, time: event, fire: 1 ms, state-per-record: 60 B}"},
    "it ends": {"record: 400 B": "record: 400 B, records: 300"},
    "it dies": {
        "interval: 1 s": "interval: 1 s, timeout: 50 ms",
        "size: 1 MB": "size: 100 MB",
        "run:": "restart: {strategy: none}\nrun:",
    },
    "another vertex": {
        "  sink: {input: {map: hash}": "  out: {input: {map: hash}, service: 1 ms}\n  sink: {input: {out: hash}"
    },
    "another seed": {"duration: 4 s": "duration: 5 s, seed: 3"},
    "the same": {"duration: 4 s": "duration: 4000 ms"},
    "prices": {"{bandwidth: 100 MB/s}": "{object-store: {latency: 50 ms}}"},
    "a long interval": {"interval: 1 s": "interval: 3 s"},
    "another backend": {"size: 1 MB": "size: 1 MB, backend: rocksdb"},
}
"""By name: what B has in place of what A has."""
COLUMNS = {statistic.title: column for column, statistic in STATISTICS.items() if statistic.title}
DEFAULTS = {
    "checkpoint.timeout": "10 min",
    "checkpoint.tolerable-failed": "0",
    "checkpoint.min-pause": "0 s",
    "storage.bandwidth": "unlimited",
    "job.map.state.backend": "hashmap",
}
"""Of Flink."""
KEY = r"[a-z][\w.-]*"


@dataclass
class ToldDiff:
    """The files of both sides, and the rows of all runs by side."""

    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    a: str = JOB
    b: str = JOB
    count: int = -1  # of inputs that differ; -1: as the files say
    column: str = ""  # that is explained: of the verdict, or of the first line of the answer

    @property
    def sides(self):
        return list(dict.fromkeys(self.rows["side"])) if len(self.rows) else []

    @cached_property
    def runs(self):
        """The rows of each side, by replication."""
        rows = self.rows.sort_values("replication").to_dict("records") if len(self.rows) else []
        return {side: [row for row in rows if row["side"] == side] for side in self.sides}

    def values(self, side, column):
        """By replication; nan: none."""
        return [_value(row, column) for row in self.runs.get(side, ())] or [math.nan]

    def is_bound(self, side, column):
        return any(column in row["unfinished"].split() for row in self.runs.get(side, ()))

    def mean(self, side, column):
        values = self.values(side, column)
        return sum(values) / len(values)

    def failures(self, which=""):
        """{side: [share of each kind of failure among those of the side]}"""
        texts = {side: " ".join(str(row.get("failure_kinds", "")) for row in self.runs.get(side, ())) for side in "AB"}
        kinds = ("task-manager", "task") if which else ("task-manager (all", "task (all", "task (some")
        counts = {
            side: [sum(map(int, re.findall(rf"(\d+) {re.escape(kind)}(?![\w-])", text))) for kind in kinds]
            for side, text in texts.items()
        }
        return {side: np.array(own) / max(sum(own), 1) for side, own in counts.items()}

    def are_unlike(self, which=""):
        a, b = self.failures(which).values()
        return bool(sum(a) and sum(b) and max(abs(a - b)) > 0.0999)

    def fail_at_unlike_times(self):
        """After unlike shares of the interval, one side always after the same."""
        shares = [[row.get("interval_passed_share", math.nan) for row in self.runs.get(side, ())] for side in "AB"]
        if not all(shares):
            return False
        return abs(np.diff([np.mean(own) for own in shares])[0]) > 0.1 and min(map(np.ptp, shares)) <= 0.1

    @property
    def has_too_few_intervals(self):
        """The runs of the side with the longer interval have less than three of them."""
        of_sides = [self.runs.get(side, [{}])[0] for side in "AB"]
        lengths_s = [row.get("interval_ms", 0) / 1e3 for row in of_sides]
        longest = of_sides[int(np.argmax(lengths_s))]
        return lengths_s[0] != lengths_s[1] and max(longest["ended_s"] / max(lengths_s), longest["completed"]) < 3

    def change(self, side, column):
        """(mean, half width of the interval, how many sides of it are bounds)"""
        if column in ("downtime_ms", "caught_up_ms") and (self.are_unlike("causes") or self.fail_at_unlike_times()):
            return math.nan, math.nan
        if (
            STATISTICS[column].population is Population.COMPLETED
            and column != "completed"
            and self.has_too_few_intervals
        ):
            return math.nan, math.nan
        apart = np.array(self.values(side, column)) - np.array(self.values("A", column))
        if not np.isfinite(apart).all():
            return math.nan, math.nan
        half = quantile(len(apart)) * np.std(apart, ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else math.inf
        return float(apart.mean()), float(half)

    def is_sure(self, column):
        """It has a direction, whatever the bounds hide."""
        value, half = self.change("B", column)
        least = -math.inf if self.is_bound("A", column) else value - (half if math.isfinite(half) else 0)
        most = math.inf if self.is_bound("B", column) else value + (half if math.isfinite(half) else 0)
        return least > 0 or most < 0

    def texts(self, column):
        sides = [(self.mean(side, column), "> " * self.is_bound(side, column)) for side in "AB"]
        return tuple("-" if not math.isfinite(value) else sign + value_text(column, value) for value, sign in sides)

    def effect(self, side, column):
        """``+10 ms ± 3 ms``; empty: it has none."""
        (value, half), ends = self.change(side, column), [self.is_bound("A", column), self.is_bound(side, column)]
        if not math.isfinite(value) or all(ends):
            return ""
        spread = f" ± {value_text(column, half).lstrip('+±')}" if math.isfinite(half) and half and not any(ends) else ""
        sign = "<" * ends[0] + ">" * ends[1]
        return f"{sign} {'+' * (value > 0)}{'-' * (value < 0)}{value_text(column, abs(value)).lstrip('+±')}{spread}".strip()

    @property
    def differing(self):
        """Keys whose values differ between the files."""
        return [key for key in _apart(*(yaml_of(text) for text in (self.a, self.b))) if not key.startswith("run.")]


@lru_cache
def quantile(count):
    return float(student.ppf(0.975, count - 1))


def _value(row, column):
    statistic = STATISTICS[column]
    least = {None: 1, 0.5: 1, 0.9: 10, 0.99: 100}[statistic.quantile]
    is_known = column in row and row["status"] == "ok" and column not in row["nothing"].split()
    return row[column] if is_known and not (statistic.counted_by and row[statistic.counted_by] < least) else math.nan


def _apart(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _apart(a.get(key), b.get(key), f"{path}.{key}".lstrip("."))
    elif a != b:
        yield path


def _vertices(text):
    return list(yaml_of(text)["job"])


def _simulated(text, **run):
    """What would run, without how it does."""
    scenario = loads(text, "diff").scenarios[0]
    return (
        scenario.job,
        scenario.checkpoint,
        scenario.storage,
        scenario.cluster,
        scenario.faults,
    )


def nothing_differs(told, match):
    """But for what is named."""
    runs = [loads(text, "diff").scenarios[0].run for text in (told.a, told.b)]
    named = match["but"] or ""
    return _simulated(told.a) == _simulated(told.b) and ("how they run" in named) == (runs[0] != runs[1])


def counts_inputs(told, match):
    return int(match["n"]) == (len(told.differing) if told.count < 0 else told.count)


def runs_failed(told, match):
    return counts_inputs(told, match) and (told.rows["status"] != "ok").any()


def nothing_changes(told, match):
    """No quantity has a change with a direction, and none is of one side alone."""
    columns = [column for column in COLUMNS.values() if column in told.rows]
    one_sided = [
        column for column in columns if math.isfinite(told.mean("A", column)) != math.isfinite(told.mean("B", column))
    ]
    sure = [
        column for column in columns if told.is_sure(column) and not is_nothing(column, told.change("B", column)[0])
    ]
    return counts_inputs(told, match) and one_sided + sure == [] and (told.rows["status"] == "ok").all()


def changes(told, match):
    """Both means, and the interval of the mean of the differences of pairs."""
    title = match["title"]  # with a capital letter at the begin of the verdict
    column = COLUMNS.get(title) or COLUMNS[title[0].lower() + title[1:]]
    told.column = told.column or column
    return told.texts(column) == (match["before"], match["after"]) and (match["change"] or "") == told.effect(
        "B", column
    )


def stays(told, match):
    column = COLUMNS[match["title"]]
    before, after = told.texts(column)
    is_seen = not any(told.is_bound(side, column) for side in "AB") and before != "-"
    return before == after == match["before"] and is_seen and is_nothing(column, told.change("B", column)[0])


def is_nothing(column, value):
    """It is 0 in the digits of a text."""
    return value_text(column, abs(value)) == value_text(column, 0.0)


def leads(told, match):
    """It has a direction, or is a number of checkpoints that is 0 on one side, or of one side alone where nothing has a direction."""
    told.column = ""
    holds = changes(told, match)
    column = told.column
    ends = sorted(told.mean(side, column) for side in "AB")
    of_one_side = math.isfinite(told.mean("A", column)) != math.isfinite(told.mean("B", column))
    others = [
        other
        for other in LEADING
        if other in told.rows and told.is_sure(other) and told.texts(other)[0] != told.texts(other)[1]
    ]
    return holds and (
        told.is_sure(column) or (column == "completed" and ends[0] == 0 < ends[1]) or (of_one_side and not others)
    )


def only_input(told, match):
    return told.count == 1 if told.count >= 0 else told.differing == [match["key"]]


def input_is(told, match):
    """As the files say; a value in brackets is of none."""
    sides = [yaml_of(text) for text in (told.a, told.b)]
    for step in match["key"].split("."):
        sides = [side.get(step) if isinstance(side, dict) else None for side in sides]
    default = f"({DEFAULTS.get(match['key'], 'none')})"
    printed = [None if text == default else yaml_of(text) for text in (match["before"], match["after"])]
    return sides == printed and sides[0] != sides[1]


def vertices_are(told, match):
    before, after = _vertices(told.a), _vertices(told.b)
    named = re.split(r", ", match["names"])
    here, there = (after, before) if match["what"] == "added" else (before, after)
    return named == [name for name in here if name not in there]


def runs_are(told, match):
    seeds = told.rows["replication"].nunique()
    ended = told.rows["job_status"].ne("RUNNING").any()
    return (int(match["n"]), int(match["seeds"]), bool(match["most"])) == (
        len(told.rows),
        seeds,
        ended,
    ) and f"duration: {match['ms']}" in told.a


def runs_alike(told, match):
    a, b = (str(yaml_of(text)["run"].get(match["key"], 1)) for text in (told.a, told.b))
    return (match["a"], match["b"]) == (a, b) and match["both"] == ({"duration": max(a, b)}.get(match["key"], a))


def names_defaults(told, match):
    """Neither file has a value for it, but for the one that is its default."""
    written = {word for text in (told.a, told.b) for word in re.findall(r"[\w-]+(?=:)", text)}
    return not written & {name.rpartition(".")[2] for name in match["names"].split(", ")}


def same_on_both(told, match):
    return all(
        stays(told, {"title": title, "before": told.texts(COLUMNS[title])[0]}) for title in match["titles"].split("; ")
    )


def failures_are_unlike(told, match):
    """Both sides have failures, and the counts are those of the rows."""
    counts = [
        sum(int(number) for row in told.runs[side] for number in re.findall(r"\d+", str(row.get("failure_kinds", ""))))
        for side in "AB"
    ]
    return told.are_unlike() and counts == [sum(map(int, re.findall(r"\d+", match[side]))) for side in "ab"]


def times_are_unlike(told, match):
    shares = {side: [row["interval_passed_share"] for row in told.runs[side]] for side in "AB"}
    apart = [100 * np.mean(own) - float(match[side.lower()]) for side, own in shares.items()]
    return told.fail_at_unlike_times() and max(map(abs, apart)) <= 0.51


def has_few_checkpoints(told, match):
    """No run of either side completes fewer, some run of this side completes so many, four at most; a longer run has time for six.

    If they are not compared, the interval is longer, and fewer than three fit into the run.
    """
    own, other = (
        min(row["completed"] for row in told.runs[side]) for side in (match["side"], *{*"AB"} - {match["side"]})
    )
    run_s = max(float(yaml_of(text)["run"]["duration"].split()[0]) for text in (told.a, told.b))
    longer_s = float(match["longer"].split()[0]) * (60 if "min" in match["longer"] else 1)
    interval_s, other_s = (
        told.runs[side][0]["interval_ms"] / 1e3 for side in (match["side"], *{*"AB"} - {match["side"]})
    )
    each_s = interval_s if (own + 2) * interval_s >= run_s else run_s / own
    is_unlike = interval_s > other_s and run_s < 3 * interval_s
    return (
        (own, is_unlike) == (int(match["few"]), bool(match["unlike"]))
        and own <= min(4, other)
        and 0 <= longer_s - 6 * each_s < 1
    )


def rocksdb_takes_longer(told, match):
    """All services of these files take 1 ms."""
    return match["name"] == "map" and (match["ms"], match["change"], match["most"]) == ("1 ms", "+1.0 %", "+10 %")


def one_dies(told, match):
    died = told.rows["job_status"].astype(str).str.startswith(("FAILED", "RESTARTING"))
    is_side = told.rows["side"] == match["side"]
    return died[is_side].all() and not died[~is_side].any()


def job_died(told, match):
    own = told.rows[told.rows["side"] == match["side"]]
    dead = own[own["job_status"].str.startswith(("FAILED", "RESTARTING"))]
    return (int(match["k"]), int(match["n"])) == (len(dead), len(own)) and match["why"] in [*dead["job_status"][:1]]


def cells_failed(told, match):
    own = told.rows[told.rows["side"] == match["side"]]
    return (int(match["k"]), int(match["n"])) == ((own["status"] != "ok").sum(), len(own)) and match["why"] in set(
        own["error"]
    )


CHANGE = r"(?P<before>(?:> )?[^>()]+?) -> (?P<after>(?:> )?[^>(),;]+?)(?: \((?P<change>[^()]*)\))?"
TITLE = f"(?P<title>{'|'.join(sorted(map(re.escape, COLUMNS), key=len, reverse=True))})"
ROCKSDB = (
    r"What RocksDB costs each record is not included, about 10 us \(3 us to 100 us\): '(?P<name>\w+)' takes (?P<ms>MS) "
    r"with both backends, and 10 us are (?P<change>\S+ %), 100 us (?P<most>\S+ %)\. Give RocksDB a longer service\.$"
)
UNLIKE_TIMES = (
    r"Failures are unlike, and what they cost is not compared: of the interval (?P<a>[\d.]+) % has passed before one with A, "
    r"(?P<b>[\d.]+) % with B\. Faults at several times \(every: or a list\) meet all parts of it$"
)
TEMPLATES = tuple(
    Template(name, pattern.replace("TITLE", TITLE).replace("CHANGE", CHANGE), always, claim)
    for name, pattern, claim in (
        (
            "nothing",
            r"Nothing that is simulated differs(?:: the same values, or values that mean the same| but (?P<but>[^.]*))\.$",
            nothing_differs,
        ),
        ("failed runs", r"(?P<n>\d+) inputs? differs?; runs failed, so what that changes is not known\.$", runs_failed),
        ("no change", r"(?P<n>\d+) inputs? differs?, and no quantity surely changes\.$", nothing_changes),
        ("one dies", r"The job of (?P<side>[AB]) dies in each run, the other runs on", one_dies),
        ("leads", r"TITLE: CHANGE(?=[,;:.] |\.$)", leads),
        ("from one", rf", from (?P<key>{KEY})(?:\.$|(?=; ))", only_input),
        ("inputs", r"(?P<n>\d+) inputs? differs?(?:\.?$|(?=; ))", counts_inputs),
        (
            "input",
            r"(?P<key>(?:job|checkpoint|storage|cluster|restart)(?:\.[\w.-]+)?): (?P<before>.*) -> (?P<after>.*)$",
            input_is,
        ),
        ("vertices", r"(?P<what>added|removed): (?P<names>.*)$", vertices_are),
        ("changes", r"TITLE: CHANGE(?!,)\.?$", changes),
        ("runs", r"(?P<n>\d+) runs of (?P<most>at most )?(?P<ms>MS), (?P<seeds>\d+) seeds? on each side$", runs_are),
        (
            "alike",
            r"(?:; )?run\.(?P<key>[\w-]+): (?P<a>[\w ]+) and (?P<b>[\w ]+), both run with (?P<both>[\w ]+)(?=;|$)",
            runs_alike,
        ),
        ("defaults", r"left at defaults that often matter, on both sides: (?P<names>.*)$", names_defaults),
        ("same", r"The same on both sides: (?P<titles>.*)\.$", same_on_both),
        (
            "unlike failures",
            r"Failures are unlike, and so are downtime and time until caught up: A has (?P<a>.*); B has (?P<b>.*)$",
            failures_are_unlike,
        ),
        (
            "unlike times",
            UNLIKE_TIMES,
            times_are_unlike,
        ),
        (
            "few checkpoints",
            (
                r"(?P<side>[AB]) has (?P<few>\d+) completed checkpoints in a run, too few for a median or a longest one"
                r"(?P<unlike>, and its interval too long for the run: checkpoints are not compared)?: "
                r"--set run\.duration='(?P<longer>\d+ (?:s|min))'$"
            ),
            has_few_checkpoints,
        ),
        (
            "RocksDB",
            ROCKSDB,
            rocksdb_takes_longer,
        ),
        ("died", r"(?P<side>[AB]): the job died in (?P<k>\d+) of (?P<n>\d+) runs: (?P<why>.*)$", job_died),
        ("cells failed", r"(?P<side>[AB]): (?P<k>\d+) of (?P<n>\d+) runs failed: (?P<why>.*)$", cells_failed),
        ("issues", r"known defects that may apply to [AB] alone: .*$", always),
        (
            "one phase",
            (
                r"windows of '(?P<at>\w+)' fire, and checkpoints are triggered, at the same distance in all of a run: it may be that no checkpoint "
                r"meets a firing; --set job\.(?P=at)\.window\.phase=VALUE shifts it$"
            ),
            lambda told, match: match["at"] == "map" and "tumbling: 2 s" in told.b,
        ),
        ("one alone", r"What one of them does alone: ckptsim diff .*$", always),
        ("costs", r"costs in USD per month; prices: .*$", always),
    )
)


def sentences(parts):
    """The texts, and each row of the tables as one; a value that is cut, or a section, has lost how it is written."""
    found = []
    for part in parts:
        rows = [] if isinstance(part, str) else part.rows
        found += [part] if isinstance(part, str) else []
        if rows and part.title.startswith("Inputs"):
            found += [f"{key}: {a} -> {b}" for key, a, b, *_ in rows if ": " not in a + b]  # not of a section
        else:
            found += [
                f"{title}: {before} -> {after}" + f" ({change})" * (change != "-")
                for title, before, after, change, _ in rows
            ]
    return [line for line in found if "..." not in line]


def ran(name, folder):
    b = JOB
    for old, new in PAIRS[name].items():
        b = b.replace(old, new)
    (folder / "a.yaml").write_text(JOB)
    (folder / "b.yaml").write_text(b)
    found = diff(folder / "a.yaml", folder / "b.yaml", replications=2, jobs=1)
    return ToldDiff(found.table, JOB, b), sentences(found.parts)


FAILURES = (
    "1 task-manager (all tasks restart)",
    "2 task (all tasks restart)",
    "2 task (some tasks restart)",
    "2 task (some tasks restart), 1 task-manager (all tasks restart)",
)


def made_up(seed):
    """Rows of random sides: equal, noisy, without values, bounds, or failed."""
    draw = random.Random(seed)
    keys = ["job.x", "storage.bandwidth", "checkpoint.interval", "cluster.slots"][: draw.choice([1, 2, 4])]
    columns = draw.sample(["completed", *LEADING[:-1], "failed", "downtime_ms", "sync_ms"], draw.choice([1, 3, 6]))
    number, rows = draw.choice([1, 2, 4]), []
    same = {column: draw.random() < 0.3 for column in columns}
    failures = {side: draw.choice(FAILURES) for side in "AB"}
    phases = {side: draw.choice([0.3, 0.3, 0.3, 0.999]) for side in "AB"}
    for side in "AB":
        nothing, ends = ([column for column in columns if draw.random() < share] for share in (0.1, 0.15))
        level = {column: draw.choice([0.0, 40.0, 40.0, 44.0, 700.0]) for column in columns}
        for i in range(number):
            values = {
                column: 40.0 + i if same[column] else level[column] + draw.choice([0, 0, 1, 9]) * i
                for column in columns
            }
            rows.append(
                {
                    "side": side,
                    "replication": i,
                    "status": "error" if draw.random() < 0.02 else "ok",
                    "error": "too little memory",
                    "job_status": draw.choice(["RUNNING"] * 20 + ["FAILED: 1"]),
                    "violations": 0,
                    "completed": 50,
                    "commits": 200,
                    "nothing": " ".join(nothing),
                    "unfinished": " ".join(ends),
                    "failure_kinds": failures[side] if i else failures["A"],
                    "interval_passed_share": phases[side] + 0.15 * i * (side == "A"),
                    **values,
                }
            )
    change = partial(InputChange, flink=(), kind="other", before="1", after="2", before_text="1", after_text="2")
    changes_ = [change(path=tuple(key.split("."))) for key in keys]
    found = SimpleNamespace(changes=changes_, added=(), removed=(), runs="")
    told = ToldDiff(pd.DataFrame(rows), count=len(changes_))
    answer = quantities(told.rows)
    said = effects.verdict(found, answer, told.rows)
    kept = [
        line
        for line in sentences(
            [
                said,
                *effects.tables(found, answer),
                *(of(told.rows) for of in (effects.unlike_failures_sentence, effects.unlike_phases_sentence)),
                effects.same_quantities_sentence(answer),
            ]
        )
        if line and " 1 -> 2" not in line
    ]
    return told, [*kept, *trouble(told.rows)]


def changed(text):
    """A sentence with another number or side, one at a time."""
    for match in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*th )", text):
        yield f"{text[: match.start()]}{1.37 * float(match[0]) + 1:.{1 if '.' in match[0] else 0}f}{text[match.end() :]}"
    for name, other in (("map", "sink"), ("src", "map"), ("A:", "B:"), ("B:", "A:")):
        if name in text:
            yield text.replace(name, other)


def test_sentences_of_diff_are_true(tmp_path):
    """About files and about made-up rows; with another number, vertex or side each is false; each template is exercised."""
    files = [(name, *ran(name, tmp_path)) for name in PAIRS]
    found, exercised = check(files, TEMPLATES)
    of_rows, more = check(((seed, *made_up(seed)) for seed in range(150)), TEMPLATES)

    assert found | of_rows == {}
    assert [template.name for template in TEMPLATES if not (exercised + more)[template.name]] == []
    told = [*(own for _, *own in files), *map(made_up, range(30))]
    weak = [weak_sentences(*own, TEMPLATES, changed, ("issues", "costs", "same", "one alone")) for own in told]
    assert [own for _, own in weak if own] == []
    assert sum(count for count, _ in weak) >= 300
