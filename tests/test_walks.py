"""docs/walks.md: every function that it names is there, hops are counted, and none goes back."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "walks.md").read_text()
MOST_HOPS = {"scenario": 21, "trigger": 30, "recording": 15, "Spark": 15}
"""Word of a walk's heading -> how long it may be."""

CALLED_BY_SIMPY = {"TwoPlaneEnvironment.step"}
FOUND_BY_THEIR_FOLDER = {"run_scenarios"}
"""Commands: no list names the verbs."""


class Station(NamedTuple):
    """A line of a walk."""

    file: str
    name: str  # Class.method or function
    in_loop: bool

    def __str__(self):
        return f"{self.file}:{self.name}"


class Walk(NamedTuple):
    heading: str
    text: str
    stations: list[Station]

    @property
    def hops(self) -> list[Station]:
        """Lines that lead into another file."""
        return [station for station in self.stations[1:] if not station.in_loop]


def walks(page: str) -> list[Walk]:
    parts = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return [Walk(part.partition("\n")[0], part, stations(part)) for part in parts]


def stations(text: str) -> list[Station]:
    found = re.findall(r"^ *(?:\d+\.|(\*)) (↻ )?`([\w./]+\.py):([\w.]+)`", text, re.MULTILINE)
    return [Station(file, name, bool(loop)) for _, loop, file, name in found]


def definitions(path: Path) -> set[str]:
    """Functions, classes and `Class.method` of a file."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        names.add(getattr(node, "name", ""))
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


def back(stations: list[Station]) -> list[Station]:
    """Lines outside of the loop whose file the walk has met."""
    return [station for i, station in enumerate(stations) if not station.in_loop and station.file in {row.file for row in stations[:i]}]


def strangers(stations: list[Station]) -> list[Station]:
    """Lines that no function of an earlier file, nor of their own, seems to call."""
    found = []
    for i, station in enumerate(stations[1:], start=1):
        called = station.name.rpartition(".")[2].removeprefix("_")
        earlier = "".join((ROOT / row.file).read_text() for row in stations[:i] if row.file != station.file)
        if station.name not in CALLED_BY_SIMPY | FOUND_BY_THEIR_FOLDER and not re.search(rf"\b{called}\b", earlier):
            found.append(station)
    return found


def test_there_are_four_walks():
    assert len(MOST_HOPS) == len([walk for walk in walks(PAGE) if any(word in walk.heading for word in MOST_HOPS)])


@pytest.mark.parametrize("walk", walks(PAGE), ids=lambda walk: walk.heading)
def test_every_function_of_a_walk_is_there(walk):
    """Whoever renames one mends the page."""
    assert [] == [station for station in walk.stations if station.name not in definitions(ROOT / station.file)]


@pytest.mark.parametrize("walk", walks(PAGE), ids=lambda walk: walk.heading)
def test_the_hops_of_a_walk_are_counted(walk):
    """The page says how many, and there are not too many."""
    (most,) = (most for word, most in MOST_HOPS.items() if word in walk.heading)

    assert int(re.search(r": (\d+) hops", walk.text)[1]) == len(walk.hops)
    assert len(walk.hops) <= most


@pytest.mark.parametrize("walk", walks(PAGE), ids=lambda walk: walk.heading)
def test_no_hop_goes_back(walk):
    """But for the rounds of the event loop."""
    assert [] == back(walk.stations)


@pytest.mark.parametrize("walk", walks(PAGE), ids=lambda walk: walk.heading)
def test_every_line_is_called_by_an_earlier_one(walk):
    """By name: a function that is called no more leaves the page."""
    assert [] == strangers(walk.stations)


def test_a_hop_that_goes_back_is_found():
    """The loop may."""
    text = "1. `a.py:f`\n2. `b.py:g`\n   * ↻ `a.py:h`\n3. `a.py:i`\n"

    assert ["a.py:i"] == list(map(str, back(stations(text))))
