"""The numbers that an advice may say: those of its data, as texts; and the numbers that it does say."""

import math
import re
from collections.abc import Iterator
from typing import Any

from sim.advice.candidates import LONG_RUNS
from sim.advice.situation import ASYNC_WORK, SYNC, UPLOAD
from sim.advice.texts import OTHER_MTBFS_S, share
from sim.model.units import format_byte_rate, format_rate
from sim.results.formats import bytes_text, change_text, ms_text, per_second_text
from tests.studies.comparison.sentence_numbers import numbers

QUANTITIES = {
    "throughput": per_second_text,
    "checkpoint p50": ms_text,
    "checkpoint p99": ms_text,
    "recovery": ms_text,
    "written per hour": bytes_text,
    "output visible p99": ms_text,
}
CONSTANTS = {"100", "99", "95 %", "99 %", str(100 * LONG_RUNS)}
"""What a 99 % quantile takes, and with which confidence."""


def stated(answer: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """(sentence or cell, its numbers) of all texts and tables of ``advice.json``; configuration is none."""
    data = answer["data"]
    quoted = sorted(set(_quoted(data)), key=len, reverse=True)
    for part in (answer["verdict"], *answer["parts"]):
        if isinstance(part, str):
            if not part.startswith("#"):
                yield part, numbers(_plain(part, quoted))
        else:
            for text in (part["title"], *(cell for row in part["rows"] for cell in row)):
                yield f"{part['title']}: {text}", numbers(_plain(text, quoted))


def _plain(text: str, quoted: list[str]) -> str:
    """On one line, without the change, a cut end, settings, and what a lever or a sink quotes."""
    lines = [line for line in text.splitlines() if not line[8:].startswith(("+ ", "- ", "... "))]
    lines = [re.sub(r"(?:\([^()]*|\S* ?\S*)\.\.\.$", "", line) if text.count("\n") else line for line in lines]
    found = " ".join(" ".join(lines).split())
    for name in quoted:
        found = found.replace(name, "NAME")
    found = re.sub(r"(?:Ask first|Caution|Lever): .*", "", found)
    found = re.sub(r"\b(?:ask|caution) +NAME", "", found)
    return re.sub(r"every (?:NAME|\d+ \w+(?:, \d+ \w+)*(?: and \d+ \w+)?)", "every NAME", found)


def _quoted(data: dict[str, Any]) -> Iterator[str]:
    settings = [tuple(own["setting"]) for own in data["times"]] + [
        (own["interval"], own["protocol"]) for own in of_settings(data)
    ]
    for interval, protocol in settings:
        yield from (f"{protocol}, every {interval}", f"{protocol} ran")
    for caution in data["cautions"]:
        yield from (caution["short"], caution["text"])
    yield from (f"{what}: {value}" for what, value in data.get("beside_flinks_keys", {}).items())


def of_settings(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (own for own in (data["advised"], data["today"], *data["settings"]) if own)
    yield from (own["setting"] for own in data.get("taken_for_granted", ()))
    yield from (end["so_far"] for row in data["unknown"] for end in row["ends"] if end["so_far"])


def known(data: dict[str, Any]) -> set[str]:
    """The texts of all numbers of the data of an advice, and of what follows from them: room, sums, rates."""
    return CONSTANTS | {*_known(data)}


def _known(data: dict[str, Any]) -> Iterator[str]:
    limits = {name: bound for name, bound in data["limits"].items() if bound is not None}
    for name, bound in limits.items():
        yield share(bound) if name == "loss" else ms_text(bound)
    for own in of_settings(data):
        setting = {name: math.nan if value is None else value for name, value in own.items()}  # JSON knows no infinity
        yield from _setting(setting, limits)
        if data["advised"]:
            bare = data["advised"]["per_second"] / (1 - data["advised"]["loss"])
            yield change_text(setting["per_second"] / bare - 1)
    yield from (
        ms_text(1e3 * seconds)
        for seconds in (*OTHER_MTBFS_S, data["mtbf_s"], data["horizon_s"], *data["mtbf_changes_advice_s"])
    )
    yield ms_text(1e3 * data["checkpoint_cost_s"])
    yield from (ms_text(1e3 * seconds) for seconds in data["intervals_by_theory_s"].values() if seconds is not None)
    yield from _confidence([*data["confidence"].values(), *(own["share"] for own in data["alternatives"])])
    for times in data["times"]:
        yield from _times(times["parts_ms"], times["uploaded_bytes"])
        yield from (ms_text(value) for value in (*times["recovery_ms"].values(), sum(times["recovery_ms"].values())))
    for row in data["against_today"]:
        text = QUANTITIES[row["quantity"]]
        yield from (
            text(abs(row[name])) for name in ("today", "advised", "change", "half_width") if row[name] is not None
        )
        yield from ((f"{sign}{text(abs(row['change']))}") for sign in "+-" if row["change"] is not None)
        yield from ((f"±{text(row['half_width'])}") for _ in "1" if row["half_width"] is not None)
    for own in data["requirements"]:
        yield from (f"{factor:.2g}" for factor in own["factors"])
        yield from (format_byte_rate(round(rate)) for rate in own["rates"] or ())
    yield from _growth(data)
    yield from _after(data, limits)
    for row in data["unknown"]:
        yield from numbers(
            " ".join(str(value) for value in (row["assumed"], row["at"], *(end["value"] for end in row["ends"])))
        )
    yield from (format_rate(round(rate)) for rate in data["greatest_rates"].values())
    yield from numbers(" ".join(data["least_known"].values()))
    for assumed, question in data["marked_unknown"].values():
        yield from numbers(f"{assumed} {question}")
    for left in data["not_run"]:
        yield from numbers(left["what"])
        yield from (interval for interval, _ in left["settings"])
    yield from (setting["interval"] for setting in data["settings"])
    yield from numbers(" ".join(f"{value}" for point in data["worlds"].values() for value in point.values()))
    for bound in data.get("taken_for_granted", ()):
        yield from numbers(f"{bound['assumed']} {bound['value']}")


def _setting(setting: dict[str, Any], limits: dict[str, float]) -> Iterator[str]:
    yield from (str(setting[name]) for name in ("runs", "checkpoints"))
    for column in (
        "checkpoint_ms",
        "checkpoint_p50_ms",
        "recovery_ms",
        "visible_ms",
        "longest_ms",
        "checkpoint_p90_ms",
    ):
        value = setting[column]
        yield from (ms_text(value, digits) for digits in range(2, 8))
        if column in limits and value > 0:
            yield share(limits[column] / value - 1)
    yield from (bytes_text(setting[name]) for name in ("persisted_bytes", "written_per_hour"))
    yield from (change_text(-setting["loss"]), *(share(max(setting["loss"], 0.0), digits) for digits in range(2, 8)))
    if "loss" in limits and setting["loss"] > 0:
        yield share(limits["loss"] / setting["loss"] - 1)
    yield share(setting["lost"])
    for _, room, needed in setting["tight"]:
        yield from (share(value) for value in (room, needed) if value is not None)


def _confidence(parts: list[float]) -> Iterator[str]:
    for part in parts:
        yield "99 %" if part > 0.99 else "1 %" if part < 0.01 else f"{100 * part:.0f} %"


def _times(parts: dict[str, float], uploaded_bytes: float) -> Iterator[str]:
    yield ms_text(sum(parts.values()))
    yield from map(ms_text, parts.values())
    yield ms_text(sum(parts.get(part, 0.0) for part in (UPLOAD, SYNC, ASYNC_WORK)))
    yield bytes_text(uploaded_bytes)
    if parts.get(UPLOAD):
        yield f"{bytes_text(uploaded_bytes / parts[UPLOAD] * 1e3)}/s"


def _growth(data: dict[str, Any]) -> Iterator[str]:
    for state in data["growing"].values():
        yield from map(bytes_text, state.values())
    lasting = data["lasting"] or {}
    yield from (ms_text(1e3 * lasting[name]) for name in ("kept_s", "broken_s") if lasting.get(name) is not None)
    yield from map(bytes_text, lasting.get("broken_bytes", {}).values())


def _after(data: dict[str, Any], limits: dict[str, float]) -> Iterator[str]:
    """What to watch, what a lost task manager adds, what the history shows."""
    if watch := data.get("watch"):
        yield from map(ms_text, watch["p50_ms"])
        yield from (
            ms_text(watch[name])
            for name in ("roll_back_above_p50_ms", "roll_back_above_longest_ms")
            if watch[name] is not None
        )
        yield bytes_text(watch["checkpointed_bytes"])
        yield from (per_second_text(watch[name]) for name in ("per_second", "roll_back_below_per_second"))
        yield str(watch["checkpoints"])
    if other := data.get("other_failure"):
        yield from (
            ms_text(value)
            for value in (other["recovery_ms"], other.get("today_ms"), *(other.get("slots_ms") or ()))
            if value
        )
        for added in other.get("added_ms") or ():
            yield from (ms_text(added), f"+{ms_text(added)}", ms_text(other["recovery_ms"] + added))
    if chances := data["chances"]:
        yield from (share(chances["kept"]), ms_text(chances["likely_ms"]))
    if history := data["history"]:
        yield from (str(history["checkpoints"]), f"{history['tail']:.2g}")
        yield from map(ms_text, history["longest_ms"])
        if bound := limits.get("checkpoint_ms"):
            yield str(sum(duration > bound for duration in history["longest_ms"]))
            but_for_the_tail = [
                own for own in data["settings"] if own["breaks"] == ["checkpoint_ms"] and own["completed"]
            ]
            yield str(
                sum((own["checkpoint_ms"] or math.inf) / history["tail"] <= bound for own in but_for_the_tail) - 1
            )
        for own in history["agreements"]:
            yield from numbers(own["what"])
            yield from _confidence([own["share"]])


def missing(answer: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """(sentence or cell, its numbers that the data have not)."""
    all_known = known(answer["data"])
    found = [(text, [number for number in own if number not in all_known]) for text, own in stated(answer)]
    return [(text, lost) for text, lost in found if lost]
