"""The sentences of `ckptsim watch`: a pattern each, and what it means, from the script of a made-up job."""

import math
import random
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from types import SimpleNamespace

import numpy as np

from sim.jobs.source.rest_answers import Totals
from sim.jobs.watch.forecast import Forecast
from sim.jobs.watch.observation import JobObservation, SeenCheckpoint
from sim.jobs.watch.serving import verdict
from sim.jobs.watch.watcher import Watcher, WatchState
from sim.model.units import format_duration
from sim.results.formats import ms_text, share_text
from tests.claims.printed import Template, always, number

S, LOOK_S, EVERY_S = 1000, 60, 10
BEGUN_MS = 1_795_000_000_000
FACTORS = SimpleNamespace(p50=1.5, p90=2.0)
PARTS = ("alignment of map", "upload of map")


@dataclass
class Script:
    """What a job does: what is true of it at each second, and what was shown of it."""

    points: list = field(default_factory=list)  # (checkpoint, whether it is held to a forecast), all that were shown
    looks: list = field(default_factory=list)  # that were shown, with the loads of the time before
    levels: list = field(default_factory=list)  # (ms, load, state, busy) from then on
    known: set = field(default_factory=set)  # numbers of all that were shown
    ended: set = field(default_factory=set)  # numbers of all that have ended
    forecasts: list = field(default_factory=list)  # that were given
    now_ms: int = BEGUN_MS
    away_ms: int | None = None
    was_away_ms: int = 0
    why: str = ""
    is_strange: bool = False
    limit_ms: float = 5000.0
    left: dict = field(default_factory=dict)  # since [ms], line, of the sentence that said so

    @property
    def shown(self):
        return [point for point, _ in self.points]

    def usual(self, *, since_ms=0, before_ms=math.inf):
        """Completed ones, without savepoints."""
        return [
            point
            for point in self.shown
            if point.status == "COMPLETED" and not point.is_savepoint and since_ms <= point.trigger_ms < before_ms
        ]

    def at(self, text):
        """Epoch ms of ``14:03:20`` of this day, or with its date."""
        day = datetime.fromtimestamp(self.now_ms / 1e3, UTC)
        text = text if " " in text else f"{day:%Y-%m-%d} {text}"
        return 1000 * int(datetime.fromisoformat(f"{text}+00:00").timestamp())

    def between(self, since_ms):
        """The levels that hold some time since then."""
        before = [level for level in self.levels if level[0] <= since_ms][-1:]
        return [*before, *(level for level in self.levels if since_ms < level[0] < self.now_ms)]


def percentiles(points):
    return (
        [float(value) for value in np.quantile([point.duration_ms for point in points], [0.5, 0.9])] if points else None
    )


def are_percentiles(points, text):
    """``p50 100 ms, p90 200 ms`` of them, or with ``and``; none: ``none completes``."""
    found = percentiles(points)
    return (
        text == "none completes"
        if found is None
        else re.split(r", | and ", text) == [f"p50 {ms_text(found[0])}", f"p90 {ms_text(found[1])}"]
    )


def is_factor(words, factor):
    """``doubled`` is about twice."""
    if match := re.fullmatch(r"is ([\d.]+) times what it was", words):
        return abs(float(match[1]) - factor) <= 0.1 * factor
    return {
        "doubled": 1.7 < factor < 2.3,
        "halved": 0.43 < factor < 0.6,
        "fell to nothing": factor == 0,
        "grew from nothing": factor == math.inf,
    }[words]


def is_away(told, match):
    return told.away_ms == told.now_ms and match["why"] == told.why


def answers_again(told, match):
    return told.was_away_ms > 0 and match["passed"] == format_duration((told.now_ms - told.was_away_ms) // 1000 * 10**9)


def is_strange(told, match):
    return told.is_strange and match["why"] == told.why


def were_missed(told, match):
    """So many ended and were in no look, though others before and after them were."""
    shown, look = told.known, told.looks[-1]
    before = max(shown - {own.checkpoint for own in look.checkpoints}, default=0)
    missed = {n for n in told.ended - shown if before < n < look.listed[1]}
    return (int(match["n"]), int(match["listed"])) == (len(missed), look.listed[0])


def before_and_now(told):
    return told.looks[-2:]


def is_another_job(told, match):
    before, now = before_and_now(told)
    return (match["old"], match["name"], match["new"]) == (
        before.job[:8],
        now.name,
        now.job[:8],
    ) and before.job != now.job


def is_another_version(told, match):
    before, now = before_and_now(told)
    return (match["old"], match["new"]) == (before.version, now.version)


def has_other_vertices(told, match):
    before, now = before_and_now(told)
    return match["names"] == ", ".join(now.parallelism) and {*before.parallelism} != {*now.parallelism}


def differs(of):
    """All that differ are named, with both values."""

    def claim(told, match):
        before, now = map(of, before_and_now(told))
        named = [
            f"{name} {before.get(name, 'unset')} -> {now.get(name, 'unset')}"
            for name in {**before, **now}
            if before.get(name) != now.get(name)
        ]
        return match["names"].split(", ") == named

    return claim


def began_again(told, match):
    before, now = before_and_now(told)
    failed = [at for at in now.failures_ms if at not in before.failures_ms]
    count = max(len(failed), now.restored - before.restored)
    return int(match["n"] or 1) == count and bool(match["rescaled"]) == (before.parallelism != now.parallelism)


def is_in_state(told, match):
    before, now = before_and_now(told)
    return (match["old"], match["new"]) == (before.state, now.state)


def has_managers(told, match):
    before, now = before_and_now(told)
    return (int(match["old"]), int(match["new"])) == (before.task_managers, now.task_managers)


def had_forecast(told, match):
    return bool(told.forecasts) and told.forecasts.pop() is not None


def had_none(told, match):
    return not told.forecasts


def is_forecast(told, match):
    return match["text"] == str(told.forecasts[-1]) and int(match["n"]) == told.forecasts[-1].history


def leaves(told, match):
    """Of those that are held to it since then, so many are beyond the bound."""
    forecast, since = told.forecasts[-1], told.at(match["since"])
    bounds = {
        "longer": (forecast.p50_ms * forecast.factors[0], forecast.p90_ms * forecast.factors[1]),
        "shorter": (forecast.p50_ms / forecast.factors[0],),
    }[match["side"]]
    held = [
        point.duration_ms if point.status == "COMPLETED" else math.inf
        for point, is_held in told.points
        if is_held and point.trigger_ms >= since - since % 1000
    ]
    held = held[: int(match["n"])]  # the one by which they left is the last
    counts = [
        sum(ms > bound if match["side"] == "longer" else ms < bound for ms in held)
        for bound in bounds
        if ms_text(bound) == match["ms"]
    ]
    told.left = {"since": since, "side": match["side"], "n": len(held)}
    told.as_left = told.usual(since_ms=since)
    return len(held) == int(match["n"]) and int(match["k"]) in counts and match["forecast"] == str(forecast)


def take_now(told, match):
    """Those from there on that had been shown when it was said."""
    points = told.shown
    ends = range(max(0, len(points) - 12), len(points) + 1)
    candidates = [points[m:n] for n in ends for m in range(n)]
    kept = [[point for point in own if point.status == "COMPLETED" and not point.is_savepoint] for own in candidates]
    return any(are_percentiles(own, match["ms"]) for own in kept)


def level_is(index):
    """Of the job at the forecast, and of it since then, which may be a mean of several."""

    def claim(told, match):
        was = [point.state_bytes["map"] for point in told.shown] if index == 2 else [level[1] for level in told.levels]
        before, now = number(match["before"]), number(match["now"])
        is_within = all(min(was) * 0.95 <= value <= max(was) * 1.05 for value in (before, now))
        recent = told.between(told.now_ms - 5 * 60 * S)
        is_recent = (
            index == 2
            or told.left
            or min(own[1] for own in recent) * 0.98 <= now <= max(own[1] for own in recent) * 1.02
        )
        return (
            is_within
            and is_recent
            and is_factor(match["words"], now / before if before else math.inf)
            and match["name"] == NAMES[index]
        )

    return claim


NAMES = {1: "src", 2: "map"}


def threads_work(told, match):
    shares = {share_text(level[3]) for level in told.levels}
    shown = [int(match[name].split()[0]) for name in ("now", "before")]
    longer = told.left["side"] == "longer"
    return shares & {match["now"], match["before"]} and (
        shown[0] - shown[1] >= 19 if longer else shown[1] - shown[0] >= 19
    )


def part_changed(told, match):
    """In the direction of the checkpoints, and no other one by more."""
    longer = told.left["side"] == "longer"
    sign, word = (1, "grew") if longer else (-1, "shrank")
    return (
        match["word"] == word
        and sign * (number(match["now"]) - number(match["before"])) >= 19
        and match["name"] in PARTS
    )


def nothing_changed(told, match):
    """Of the load; what Flink does not tell is named as that."""
    usual = told.forecasts[-1].usual
    rates = [level[1] for level in told.between(told.left["since"])]
    has_parts = any(point.parts_ms for point in told.shown)
    is_alike = min(rates) / 1.32 <= usual.load["src"] <= 1.32 * max(rates) if usual.load else "load" in match["unknown"]
    return (
        is_alike
        and ("parts" in (match["unknown"] or "")) == (not has_parts)
        and ("parts" in (match["same"] or "")) == has_parts
    )


def is_within_again(told, match):
    """Since then most are within, and the time between is that from the sentence before."""
    since = told.at(match["since"])
    passed = (since - told.left["since"]) / 1e3
    return since > told.left["since"] and abs(number(match["passed"]) / 1e3 - passed) <= 1 + 0.01 * passed


def limit_is(told, match):
    """Of the last twenty, or of all."""
    done = [point for point in told.usual() if point.checkpoint != 1][-20:]
    p90 = percentiles(done)[1]
    is_over = match["side"].startswith("longer")
    is_beside = p90 > told.limit_ms if is_over else p90 <= 0.8 * told.limit_ms
    is_p90 = abs(number(match["ms"]) - p90) <= 0.03 * p90 and (number(match["ms"]) > told.limit_ms) == is_over
    return len(done) == int(match["n"]) and is_beside and is_p90 and number(match["limit"]) == told.limit_ms


def did_fail(told, match):
    point = next((point for point in told.shown if point.checkpoint == int(match["n"])), None)
    if point is None:
        return False
    after = match["after"] is None or match["after"] == ms_text(point.duration_ms)
    is_it = point.is_savepoint == (match["what"] == "savepoint") and (match["after"] is None) == (point.duration_ms < 0)
    return point.status == "FAILED" and after and (match["why"] or "") == point.failure and is_it


def fail_in_a_row(told, match):
    """So many periodic checkpoints have failed since one completed, up to the named one."""
    periodic = [point for point in told.watched if not point.is_savepoint]
    ends = [place for place, point in enumerate(periodic) if point.checkpoint == int(match["n"])]
    return bool(ends) and failures_before(periodic[: ends[0] + 1]) == int(match["count"])


def complete_again(told, match):
    """Before one of the checkpoints that completed, so many had failed since the one before."""
    periodic = [point for point in told.watched if not point.is_savepoint]
    done = [place for place, point in enumerate(periodic) if point.status == "COMPLETED"]
    return int(match["count"]) in [failures_before(periodic[:place]) for place in done[-10:]]


def failures_before(periodic):
    """How many of the last checkpoints failed since one completed."""
    since = takewhile(lambda point: point.status != "COMPLETED", reversed(periodic))
    return sum(point.status == "FAILED" for point in since)


def gives_no_answer(told, match):
    return told.away_ms is not None and told.at(match["since"]) == told.away_ms // 1000 * 1000


def has_no_forecast(told, match):
    return not told.forecasts


def exceeds_the_limit(told, match):
    """By the checkpoints of the last 20 that are not savepoints, the first one included."""
    done = [point.duration_ms for point in told.watched[-20:] if point.status == "COMPLETED" and not point.is_savepoint]
    p90 = float(np.quantile(done, 0.9))
    return number(match["limit"]) == told.limit_ms < p90 and abs(number(match["p90"]) - p90) <= 0.03 * p90


def keeps(told, match):
    """Some completed since it was made."""
    since = told.forecasts[-1].made_ms
    is_held = any(point.status == "COMPLETED" and point.trigger_ms >= since for point in told.shown[-20:])
    return is_held and match["forecast"] == str(told.forecasts[-1])


def beyond_the_forecast(told):
    """Of what is printed about the last checkpoints."""
    forecast = told.forecasts[-1]
    durations = [
        point.duration_ms for point in told.shown[-20:] if point.status == "COMPLETED" and not point.is_savepoint
    ]
    p50, p90 = np.quantile(durations, [0.5, 0.9])
    below, above = (forecast.p50_ms * forecast.factors[0] ** sign for sign in (-1, 1))
    said = {"p50 is below it": p50 < below, "p50 is above it": p50 > above}
    said["p90 is above it"] = p90 > forecast.p90_ms * forecast.factors[1]
    return [text for text, holds in said.items() if holds]


def keeps_each(told, match):
    return keeps(told, match) and not beyond_the_forecast(told)


def none_is_held(told, match):
    return not keeps(told, match) and match["forecast"] == str(told.forecasts[-1])


def has_left(told, match):
    return told.left and told.at(match["since"]) == told.left["since"] and match["forecast"] == str(told.forecasts[-1])


def completed(told, match):
    latest = [point for point in told.watched[-20:] if not point.is_savepoint]
    done = [point for point in latest if point.status == "COMPLETED"]
    percent = are_percentiles(done, match["ms"]) if match["ms"] else not done
    return (int(match["k"]), int(match["n"])) == (len(done), len(latest)) and percent


FORECAST = r"p50 MS within a factor of \d+(?:\.\d+)?, p90 MS within \d+(?:\.\d+)?"
CLOCK = r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
WORDS = r"(?P<words>doubled|halved|fell to nothing|grew from nothing|is [\d.]+ times what it was)"
P50 = r"(?:p50 MS(?:,| and) p90 MS|none completes)"
TEMPLATES = tuple(
    Template(
        name,
        pattern.replace("FORECAST", FORECAST).replace("CLOCK", CLOCK).replace("WORDS", WORDS).replace("P50", P50),
        always,
        claim,
    )
    for name, pattern, claim in (
        ("away", r"the JobManager (?:is unreachable|answers too slowly): (?P<why>[^;]*); watching continues", is_away),
        ("answers again", r"the JobManager answers again, after (?P<passed>[\d.]+ \w+)", answers_again),
        ("makes no sense", r"unexpected response: (?P<why>[^;]*); watching continues", is_strange),
        ("makes sense", r"the answers make sense again", lambda told, _: told.was_strange),
        (
            "missed",
            (
                r"(?P<n>\d+) checkpoints? ended unseen: Flink lists (?P<listed>\d+); poll more often, or raise web.checkpoints.h"
                r"istory$"
            ),
            were_missed,
        ),
        (
            "another job",
            r"job (?P<old>\w+) is gone; '(?P<name>.*)' runs as job (?P<new>\w+), which is watched from now on",
            is_another_job,
        ),
        ("version", r"Flink (?P<old>\S+) became (?P<new>\S+)$", is_another_version),
        ("vertices", r"the job has other vertices: (?P<names>.*)$", has_other_vertices),
        (
            "rescaled",
            r"rescaled: (?P<names>.*)$",
            differs(lambda look: {name: str(own) for name, own in look.parallelism.items()}),
        ),
        ("settings", r"settings changed: (?P<names>.*)$", differs(lambda look: look.settings["checkpoints"])),
        (
            "began again",
            (
                r"the job began again(?:, (?P<n>\d+) times)?: (?P<rescaled>its rescaling, )?a failure, or a restart of the JobMa"
                r"nager"
            ),
            began_again,
        ),
        ("state of the job", r"the job is (?P<new>[A-Z]+) \(before: (?P<old>[A-Z]+)\)", is_in_state),
        ("TaskManagers", r"TaskManagers: (?P<old>\d+) -> (?P<new>\d+)", has_managers),
        (
            "another forecast",
            r"the forecast was of the job before that; a new one is made of its next 6 checkpoints",
            had_forecast,
        ),
        ("a forecast", r"a forecast is made of its next 6 checkpoints", had_none),
        ("forecast", r"forecast: (?P<text>FORECAST), told by (?P<n>\d+) checkpoints", is_forecast),
        (
            "leaves",
            (
                r"checkpoints leave the forecast: since (?P<since>CLOCK), (?P<k>\d+) of (?P<n>\d+) are (?P<side>longer|shorter) "
                r"than (?P<ms>MS) \((?P<forecast>FORECAST)\)"
            ),
            leaves,
        ),
        ("now", r"now (?P<ms>P50)", take_now),
        ("load", r"load of '(?P<name>\w+)' WORDS \((?P<before>COUNT/s) -> (?P<now>COUNT/s)\)", level_is(1)),
        ("state", r"state of '(?P<name>\w+)' WORDS \((?P<before>SIZE) -> (?P<now>SIZE)\)", level_is(2)),
        (
            "threads",
            r"threads of '(?P<name>\w+)' work (?P<now>\d+ %) of the time on average \(before: (?P<before>\d+ %)\)",
            threads_work,
        ),
        (
            "part",
            r"of a checkpoint, (?P<name>[\w ]+) (?P<word>grew|shrank) most: (?P<now>MS) \(before: (?P<before>MS)\)",
            part_changed,
        ),
        (
            "nothing changed",
            r"Why is not known: (?P<same>[\w ,]+ are as they were)?(?:; )?(?P<unknown>of [\w ,]+ nothing is known)?",
            nothing_changed,
        ),
        (
            "within",
            r"checkpoints are within the forecast again since (?P<since>CLOCK), after (?P<passed>[\d.]+ \w+)",
            is_within_again,
        ),
        (
            "limit",
            (
                r"checkpoints are (?P<side>longer than|within) (?P<limit>MS)(?: again)?: p90 of the last (?P<n>\d+) is (?P<ms>MS"
                r")"
            ),
            limit_is,
        ),
        (
            "failed",
            r"(?P<what>checkpoint|savepoint) (?P<n>\d+) failed(?: after (?P<after>MS))?(?:: (?P<why>.*))?$",
            did_fail,
        ),
        (
            "failed in a row",
            (
                r"no checkpoint completes(?: since the one of CLOCK)?: (?P<count>\d+) in a row failed(?: \(\d+ are tolerated\))?, "
                r"(?P<n>\d+) the last(?: after MS)?(?:: .*)?$"
            ),
            fail_in_a_row,
        ),
        (
            "completes again",
            r"checkpoints complete again, after (?P<count>\d+) failed in a row$",
            complete_again,
        ),
        ("no answer", r"The JobManager gives no answer since (?P<since>CLOCK)", gives_no_answer),
        (
            "exceeds the limit",
            r"Checkpoints are longer than their limit, (?P<limit>MS): p90 (?P<p90>MS)",
            exceeds_the_limit,
        ),
        ("no forecast", r"There is no forecast yet", has_no_forecast),
        ("keeps", r"Checkpoints keep their forecast: (?P<forecast>FORECAST)", keeps_each),
        (
            "not sure yet",
            (
                r"It is not sure yet whether checkpoints keep their forecast \((?P<beyond>p[59]0 is (?:above|below) it(?: and p90 is above it)?)\): "
                r"(?P<forecast>FORECAST)"
            ),
            lambda told, match: keeps(told, match) and match["beyond"] == " and ".join(beyond_the_forecast(told)),
        ),
        ("none is held", r"No checkpoint of these is held to the forecast: (?P<forecast>FORECAST)", none_is_held),
        ("has left", r"Checkpoints left their forecast at (?P<since>CLOCK): (?P<forecast>FORECAST)", has_left),
        ("completed", r"(?P<k>\d+) of the last (?P<n>\d+) checkpoints completed(?:, with (?P<ms>P50))?", completed),
    )
)


def play(seed, *, looks=45):
    """What a watch says of a made-up job, and the script behind it, sentence by sentence: (script, text)."""
    draw = random.Random(seed)
    told = Script()
    told.watcher, told.was_strange, told.watched = Watcher(WatchState(), told.limit_ms), False, []
    base = JobObservation(
        BEGUN_MS,
        "a" * 32,
        "orders",
        "RUNNING",
        BEGUN_MS - 3600 * S,
        "2.3.0",
        {"src": 1, "map": 2},
        ("src",),
        {"checkpoints": {"interval": "10000", "min_pause": "0"}},
        2,
        0,
        (),
        {},
        (),
    )
    load, size, busy, factor, grows, settling, first = 1000.0, 1e6, 0.4, 1.0, draw.choice([0, 0, 2e4]), 0, 1
    written, busy_ms, all_ms, has_parts = 0.0, 0.0, 0.0, draw.random() < 0.7
    told.levels.append((BEGUN_MS, load, size, busy))
    for k in range(1, looks):
        now_ms = told.now_ms = BEGUN_MS + k * LOOK_S * S
        written, busy_ms, all_ms = written + load * LOOK_S, busy_ms + busy * LOOK_S * S, all_ms + LOOK_S * S
        if told.away_ms is None and draw.random() < 0.05 and k > 1:
            told.why, told.away_ms = "HTTP 503", now_ms
            yield from (
                (told, event.text)
                for event in told.watcher.on_failed_poll(now_ms, told.why, is_slow=draw.random() < 0.5)
            )
            yield told, verdict(told.watcher)
            continue
        if draw.random() < 0.03 and k > 1:
            told.why, told.is_strange, told.was_away_ms, told.away_ms = "no JSON", True, told.away_ms or 0, None
            yield from ((told, event.text) for event in told.watcher.on_invalid_response(now_ms, told.why))
            told.was_away_ms, told.was_strange = 0, True
            continue
        last = k * LOOK_S // EVERY_S
        points = []
        for n in range(first, last):
            state = size + grows * (n - first)
            ms = (80 * factor + 20) * draw.choice([0.95, 1.0, 1.05])
            status, failure = "COMPLETED", ""
            if draw.random() < 0.03:
                status, failure = "FAILED", draw.choice(["Checkpoint expired before completing.", "declined", ""])
            ms = draw.choice([ms, ms, ms, -1]) if failure == "declined" else ms
            point = SeenCheckpoint(
                base.job,
                n,
                status,
                BEGUN_MS + n * EVERY_S * S,
                ms,
                draw.random() < 0.03,
                failure=failure,
                state_bytes={"map": state},
                parts_ms=dict(zip(PARTS, (20.0, 80 * factor), strict=True)) if has_parts else {},
            )
            points.append(point)
        told.ended |= {*range(first, last)}
        size, first = size + grows * (last - first), last
        change = draw.random()
        if change < 0.04:
            base = replace(base, restored=base.restored + 1, failures_ms=(now_ms - 30 * S,))
            settling = 3
        elif change < 0.06:
            base = replace(base, settings={"checkpoints": {"interval": "10000", "min_pause": str(k)}})
        elif change < 0.07:
            base = replace(base, parallelism={"src": 1, "map": k})
        elif change < 0.08:
            base = replace(base, version=f"2.3.{k}")
        elif change < 0.10:
            base = replace(base, task_managers=k)
        elif change < 0.11:
            base = replace(base, parallelism={**base.parallelism, f"sink{k}": 1})
        elif change < 0.13:
            base = replace(base, state="RUNNING" if base.state == "RESTARTING" else "RESTARTING")
        shown = points[-10:]
        base = replace(
            base,
            time_ms=now_ms,
            totals={
                "src": Totals(
                    records_in=0, records_out=written, busy_ms=all_ms / 2, idle_ms=all_ms / 2, backpressured_ms=0
                ),
                "map": Totals(
                    records_in=written, records_out=0, busy_ms=busy_ms, idle_ms=all_ms - busy_ms, backpressured_ms=0
                ),
            },
        )
        look = replace(base, checkpoints=tuple(shown), listed=(10, max(last - 10, 1)))
        told.looks.append(look)
        told.known |= {point.checkpoint for point in shown}
        forecast = told.watcher.state.forecast
        before = told.looks[-2] if len(told.looks) > 1 else look
        is_other = (before.settings, before.parallelism, before.version) != (
            base.settings,
            base.parallelism,
            base.version,
        )
        for point in shown:
            if is_other:
                continue
            told.watched.append(point)
            is_held = not point.is_savepoint and point.checkpoint != 1
            if is_held and settling:
                settling, is_held = settling - 1, False
            is_held &= forecast is not None and point.trigger_ms >= forecast.made_ms
            told.points.append((point, is_held and (point.status == "COMPLETED" or "expired" in point.failure)))
        told.was_away_ms, told.away_ms = told.away_ms or 0, None
        events, _ = told.watcher.process_observation(look, now_ms)
        yield from ((told, event.text) for event in events)
        if is_other:
            told.points, told.watched, told.left, told.forecasts = [], [], {}, []
        told.was_strange = told.is_strange = False
        told.was_away_ms = 0
        if told.watcher.wants_forecast:
            forecast = Forecast(
                now_ms, base.job, *percentiles(told.usual()[-20:]), (FACTORS.p50, FACTORS.p90), 20, told.watcher.usual
            )
            told.forecasts.append(forecast)
            told.left = {}
            yield from ((told, event.text) for event in told.watcher.use_forecast(forecast, now_ms))
        yield told, verdict(told.watcher)
        if draw.random() < 0.12:
            load = draw.choice([0.0, 500.0, 1000.0, 2000.0])
        if draw.random() < 0.05:
            size *= draw.choice([0.4, 2.5])
        if draw.random() < 0.1:
            busy = draw.choice([0.1, 0.4, 0.9])
        if draw.random() < 0.15:
            factor = draw.choice([0.3, 1.0, 1.0, 1.0, 1.5, 4.0, 100.0])
        told.levels.append((now_ms, load, size, busy))
