"""Each sentence of an advice has a template, and holds of the rows of the runs that it rests on: made-up jobs, random limits."""

import random
import re
from dataclasses import dataclass, field
from statistics import fmean
from textwrap import dedent

import pytest

from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from tests.advice.made_up import JOB, MadeUp
from tests.claims.printed import Template, always, check, number, same_ms

PROTOCOLS = ("aligned", "unaligned", "aligned-timeout 1 s")
SETTING = r"(?P<name>[\w ,-]+?, every \d+ (?:ms|s|min|h))"


@dataclass
class ToldAdvice:
    """The rows of all runs, by the setting that they tried, and the limits."""

    limits: Limits
    today: str
    rows: dict = field(default_factory=dict)  # setting -> the last row of each trial and replication
    advised: str = ""
    closest: str = ""
    written: str = ""  # by a subtask to storage without a limit

    def note(self, found):
        for row in found.to_dict("records"):
            self.rows.setdefault(f"{row['protocol']}, every {row['interval']}", {})[
                row["trial"], row["replication"]
            ] = row
        return found

    def checkpoints_ms(self, name):
        """The longest: of few, and of long runs, it stands for p99."""
        return max(
            row["end_to_end_max_ms"] for row in self.rows[name].values() if row["trial"] in {"undisturbed", "long"}
        )

    def recovery_ms(self, name):
        failing = [
            row["caught_up_ms"]
            for row in self.rows[name].values()
            if row["trial"] not in {"undisturbed", "long", "file"}
        ]
        return fmean(failing or [row["caught_up_ms"] for row in self.rows[name]])

    def keeps(self, name):
        limits = self.limits
        return (limits.checkpoint_ms is None or self.checkpoints_ms(name) <= limits.checkpoint_ms) and (
            limits.recovery_ms is None or self.recovery_ms(name) <= limits.recovery_ms
        )


def advised(told, match):
    told.advised = match["name"]
    return told.keeps(match["name"]) and bounds(told, match)


def breaks_in_file(told, match):
    """It keeps the limits in trials, and may be a fifth longer in the run of the file than its limit allows."""
    told.advised = match["name"]
    in_file_ms = told.rows[match["name"]]["file", 0]["caught_up_ms"]
    is_close = 1.2 * in_file_ms > told.limits.recovery_ms
    return told.keeps(match["name"]) and same_ms(match["value"], in_file_ms) and is_close and bounds(told, match)


def ran_as_the_file_is(told, match):
    """Each setting whose file has run, with the recovery of that run."""
    shown = dict(re.findall(r"([\w ,-]+, every [\w ]+): recovery (\d[\d.]* \w+) \(", match["runs"].replace("; ", ";")))
    rows = {name: rows["file", 0]["caught_up_ms"] for name, rows in told.rows.items() if ("file", 0) in rows}
    return set(shown) == set(rows) and all(same_ms(text, rows[name]) for name, text in shown.items())


def stays(told, match):
    return match["name"] == told.today and advised(told, match)


def bounds(told, match):
    """Each limit is printed as it was given."""
    printed = dict(re.findall(r"(checkpoints|recovery) at most (\d[\d.]* \w+)", match["bounds"]))
    given = {"checkpoints": told.limits.checkpoint_ms, "recovery": told.limits.recovery_ms}
    return {name: number(text) for name, text in printed.items()} == {
        name: ms for name, ms in given.items() if ms is not None
    }


def none_keeps(told, match):
    return not any(told.keeps(name) for name in told.rows) and bounds(told, match)


def has_little_room(told, match):
    """It keeps the limit, by less than predictions may be off."""
    told.advised = match["name"]
    value = {"recovery": told.recovery_ms, "checkpoints": told.checkpoints_ms}[match["what"]](match["name"])
    room = number(match["limit"]) / number(match["value"]) - 1
    return told.keeps(match["name"]) and same_ms(match["value"], value) and room < 0.2 + 0.01


def all_fall_behind(told, match):
    rates = {
        (row["emitted_per_second"], row["offered_per_second"])
        for rows in told.rows.values()
        for row in rows.values()
        if row["trial"] == "undisturbed"
    }
    return rates == {(float(match["rate"][:-2]), float(match["due"][:-2]))} and max(rates)[0] < max(rates)[1]


def is_closest(told, match):
    """It breaks a limit."""
    told.closest = match["name"]
    return not told.keeps(match["name"])


def is_over(told, match):
    """The value is that of the closest setting, and its mark says whether it is beyond the limit, or why it is not known to be kept."""
    value_of = {"checkpoints": told.checkpoints_ms, "recovery": told.recovery_ms}
    value = value_of[match["what"]](told.closest)
    limit, kinds = number(match["limit"]), {trial for trial, _ in told.rows[told.closest]}
    is_near = (number(match["most"]) >= limit if match["most"] else False) or match["doubt"]
    mark = "✗" if value > limit else "~" if is_near else "✓"
    is_short = match["doubt"] != "too few checkpoints ran to show that it is kept" or "long" not in kinds
    return same_ms(match["value"], value) and match["mark"] == mark and is_short and (not match["doubt"] or mark == "~")


def is_longest_part(told, match):
    """Of the recovery of the closest setting, which has three parts."""
    part, total = number(match["part"]), number(match["total"])
    return same_ms(match["total"], told.recovery_ms(told.closest)) and part <= total <= 3 * part


def is_count(told, match):
    return int(match["n"]) == sum(
        row["completed"] for row in told.rows[told.advised].values() if row["trial"] in {"undisturbed", "long"}
    )


def ran_so_often(told, match):
    return int(match["n"]) == sum(row["trial"] == "undisturbed" for row in told.rows[told.advised].values())


def did_not_run(told, match):
    """No row without levers has the interval, but for the barriers that are named."""
    listed = re.findall(r"(\d+ (?:ms|s|min|h))(?: without levers)?(?: \(only ([\w ,-]+) ran\))?", match["intervals"])
    modes = {f"{protocol}{debloating}" for protocol in PROTOCOLS for debloating in ("", ", debloating")}
    names = {(name.rpartition(", every ")[2], name.rpartition(", every ")[0]) for name in told.rows}
    over = [
        f"{protocol}, every {interval}" for interval, protocol in names if interval == match["at"] and protocol in modes
    ]
    if match["at"] and (not over or any(told.recovery_ms(name) <= told.limits.recovery_ms for name in over)):
        return False
    return all(
        {protocol for interval, protocol in names if interval == own and protocol in modes}
        == (set(re.split(r" and |, (?!debloating)", only)) if only else set())
        for own, only in listed
    )


def none_is_advised(told, match):
    return not told.advised


def advises(told, match):
    return bool(told.advised)


TEMPLATES = tuple(
    Template(name, pattern.replace("SETTING", SETTING), when, claim)
    for name, pattern, claim, when in (
        (
            "use",
            r"(?:If .*?, use|Use) SETTING(?:, with [^.]*)?\. It meets the limits \((?P<bounds>[^)]*)\)",
            advised,
            always,
        ),
        (
            "few runs",
            (
                r"(?:(?:If .*?, t|T)ry|Keep the current setting,) SETTING(?:, with [^.]*?)?, and monitor it\. "
                r"It meets the limits \((?P<bounds>[^)]*)\), but there are too few runs to rule out a better setting"
            ),
            advised,
            always,
        ),
        ("stay", r"Keep the current setting, SETTING\. It meets the limits \((?P<bounds>[^)]*)\)", stays, always),
        (
            "breaks in the file",
            (
                r"(?:(?:If .*?, t|T)ry|Keep the current setting,) SETTING(?:, with [^.]*?)?, and monitor it\. "
                r"It meets the limits \((?P<bounds>[^)]*)\) in trials, but with the events "
                r"in the file, recovery takes (?P<value>MS) \(a storage outage at 100 s\)"
            ),
            breaks_in_file,
            always,
        ),
        (
            "run of the file",
            r"With the events in the file \(faults, savepoints, backlog\): (?P<runs>.*)",
            ran_as_the_file_is,
            advises,
        ),
        ("nothing loses less", r"no other setting tried loses significantly less time", always, advises),
        (
            "no limit of storage",
            (
                r"writing up to (?P<size>SIZE) per subtask takes no time here, as storage has no limit: how long it takes is "
                r"unknown until you write storage\.bandwidth"
            ),
            lambda told, match: match["size"] == told.written,
            advises,
        ),
        (
            "falls behind",
            (
                r"The job falls behind with every setting tried: sources emit (?P<rate>[\d.]+k?/s) of the (?P<due>[\d.]+k?/s) "
                r"that are due once buffers are full"
            ),
            all_fall_behind,
            always,
        ),
        (
            "too little room",
            (
                r"(?:(?:If .*?, t|T)ry|Keep the current setting,) SETTING(?:, with [^.]*?)?, and monitor it\. The margin is small: "
                r"(?P<what>recovery|checkpoints) "
                r"(?P<value>MS), limit (?P<limit>MS), and may be [\d.]+ % longer"
                r"(?:; (?:recovery|checkpoints) MS, limit MS, and may be [\d.]+ % longer)?"
            ),
            has_little_room,
            always,
        ),
        (
            "no setting",
            r"No setting tried (?:so far )?meets the limits \((?P<bounds>[^)]*)\)",
            none_keeps,
            always,
        ),
        (
            "closest",
            (r"closest +SETTING"),
            is_closest,
            none_is_advised,
        ),
        (
            "closest limit",
            (
                r"(?P<mark>[✓~✗]) \w+ (?:longest of \d+ |p99 of )?(?P<what>checkpoints|recovery)(?:, task manager lost)? "
                r"(?P<value>MS)(?: \([\d.]+(?: \w+)? to (?P<most>MS)\))?, limit (?P<limit>MS)"
                r"(?:; (?P<doubt>too few checkpoints ran to show that it is kept|not run with the events of the file))?"
            ),
            is_over,
            none_is_advised,
        ),
        (
            "time",
            r"time +(?P<part>MS) of (?P<total>MS) of recovery: [\w ']+?(?= fits|$)",
            is_longest_part,
            none_is_advised,
        ),
        ("enough", r"fits +(?:Not enough for )?SETTING: .*|fits +.*", always, none_is_advised),
        (
            "sure",
            r"Confidence: too few runs to estimate it \((?P<n>\d+) of the advised setting\)",
            ran_so_often,
            advises,
        ),
        (
            "resamples",
            r"Confidence: chosen in .*? of bootstrap resamples \([^)]* including its other intervals\)[^.]*",
            always,
            advises,
        ),
        (
            "judged by",
            (
                r"The limit on checkpoints is judged by the longest of (?P<n>\d+) simulated ones(?:: at least \d+ are needed for "
                r"a p99 with 95 % confidence)?(?:\. Whether more .*)?"
            ),
            is_count,
            advises,
        ),
        (
            "not run",
            (
                r"Not run: every (?P<intervals>.*?): "
                r"(?:without levers recovery exceeds its limit at (?P<at>\d+ \w+) already|failures would cost more .*|.*)"
            ),
            did_not_run,
            always,
        ),
    )
)
JUDGED = re.compile(r"(?:With the events|If|Use|Keep|Try|No setting|[cC]losest|Confidence|The limit on|Not run)")


def made_up(seed, folder):
    """An advice about a job whose checkpoints take so long, under random limits."""
    draw = random.Random(seed)
    limits = Limits(
        checkpoint_ms=draw.choice([None, 500.0, 2000.0, 20_000.0]),
        recovery_ms=draw.choice([None, 6500.0, 38_000.0, 60_000.0]),
    )
    told = ToldAdvice(
        limits if limits.checkpoint_ms or limits.recovery_ms else Limits(checkpoint_ms=1000.0), "aligned, every 30 s"
    )
    run = MadeUp(
        {name: draw.choice([60.0, 450.0, 1900.0, 9000.0]) for name in PROTOCOLS},
        draw.choice([0.0, 0.2]),
        cost_s=draw.choice([0, 0.5]),
        due=draw.choice([400.0, 400.0, 600.0]),
    )
    slow_ms, fault = draw.choice([30_000.0, 35_000.0, 55_000.0]), ""
    if told.limits.recovery_ms and seed % 4 == 3:
        fault = "faults: [{storage: outage, at: 100 s, lasts: 1 s}]\n"
        run.but = lambda own: {"failures": 1, "caught_up_ms": slow_ms} if own["trial"] == "file" else {}
    told.written, state = ("", "") if seed % 2 else ("20 MB", ", state: {size: 40 MB}")
    (folder / "job.yaml").write_text(dedent(JOB).replace("service: 1 ms,", f"service: 1 ms{state},") + fault)
    bench = prepare_bench(folder / "job.yaml", (), (), recovery_ms=told.limits.recovery_ms)
    run_trials, run.run = run.run, lambda scenarios: told.note(run_trials(scenarios))
    found = report(bench, told.limits, 8.64e7, run, folder, max_replications=3)
    texts = [" ".join(line.split()) for part in found.parts if isinstance(part, str) for line in (part.split("\n\n"))]
    return told, [text for text in texts if JUDGED.match(text)]


def checked(seeds, folder):
    return check(((seed, *made_up(seed, folder)) for seed in seeds), TEMPLATES)


def test_sentences_of_advice_are_true(tmp_path):
    found, exercised = checked((1, 2, 31), tmp_path)

    assert found == {}
    assert len(exercised) >= 5
    assert exercised["no limit of storage"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds",
    [(2, 4, 8, 14, 15, 21, 26, 29, 31), pytest.param(range(32), marks=pytest.mark.nightly)],
    ids=lambda seeds: str(len(seeds)),
)
def test_each_template_is_exercised_and_true(seeds, tmp_path):
    found, exercised = checked(seeds, tmp_path)

    assert found == {}
    assert [template.name for template in TEMPLATES if not exercised[template.name]] == UNEXERCISED


UNEXERCISED = ["few runs", "resamples"]
"""`tests/advice` has them: three runs that do not settle a choice, and many runs."""
