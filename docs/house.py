"""The rooms of the package: the storeys where they lie, and a table from their docstrings.

python -m docs.house          writes the table into docs/architecture.md
python -m docs.house circles  prints the modules that import each other in a circle
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "BEGIN", "END", "ROOT", "SIM", "STOREYS", "circles", "imports", "module_imports", "modules", "page", "room",
    "room_imports",
]  # fmt: skip

ROOT = Path(__file__).parent.parent
SIM = ROOT / "sim"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by docs/house.py -->", "<!-- end of the drawing -->"


@dataclass(frozen=True, slots=True)
class Storey:
    """A storey of the house: its rooms import from each other and from storeys below."""

    name: str
    what: str
    rooms: tuple[str, ...]


STOREYS = (
    Storey("Doors", "who asks, and in which form", ("cli", "api", "verbs", "examples")),
    Storey(
        "Answers", "what many runs, or a real job, tell",
        ("comparison", "explain", "differences", "sweeps", "advice", "traces",
         "evidence", "history", "watching", "timeline", "report"),
    ),
    Storey("Jobs", "a job, and one run of it", ("scenario", "recordings", "cells", "analysis", "series", "sheet")),
    Storey(
        "Simulator", "Flink on two planes and one clock",
        ("runtime", "checkers", "protocol", "plane", "state", "storage", "metrics"),
    ),
    Storey(
        "Ground", "nouns, units and files",
        (
            "model", "quantities", "units", "address", "stand_ins", "condition", "prose", "foreign", "packed_records", "whole_file",
            "folder_lock",
        ),
    ),
)  # fmt: skip
"""From top to bottom."""


def modules() -> Iterator[Path]:
    """Every file of the package."""
    yield from sorted(SIM.rglob("*.py"))


def room(path: Path) -> str:
    """The folder of `sim/` that a file lies in, or its own name."""
    return path.relative_to(SIM).parts[0].removesuffix(".py")


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of everything a module imports; relative imports are resolved, `from sim import units` is sim.units."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            folder = ROOT.joinpath(*source.split("."))
            for alias in node.names:  # a name may be a module of its own
                inner = (folder / f"{alias.name}.py").exists() or (folder / alias.name / "__init__.py").exists()
                yield node.lineno, f"{source}.{alias.name}" if inner else source


def module_imports() -> dict[str, set[str]]:
    """Module -> modules of the package that it imports; imports for type checkers count as well."""
    names = {_dotted(path): path for path in modules()}
    return {name: {source for _, source in imports(path) if source in names and source != name} for name, path in names.items()}


def room_imports() -> dict[str, set[str]]:
    """Room -> rooms that it imports."""
    return {
        here: {source.split(".")[1] for path in modules() if room(path) == here for _, source in imports(path) if source.startswith("sim.")}
        - {here}
        for here in sorted({room(path) for path in modules()})
    }


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of names that reach each other (strongly connected components of two or more), the largest first."""
    reach = {name: _reachable(name, edges) for name in edges}
    groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in edges if name in reach[name]}
    return sorted(map(list, groups), key=lambda group: (-len(group), group))


def page(text: str) -> str:
    """The page with its table made again."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{_table()}\n{END}{after}"


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = edges.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _table() -> str:
    """A row per room and sub-room: files, and the first sentence of what it says of itself."""
    rows = ["| room | files | what it is |", "|---|---:|---|"]
    for package in sorted({path.parent for path in modules()} - {SIM}):
        files = [path for path in package.glob("*.py") if path.name != "__init__.py"]
        summary = (ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| `{package.relative_to(SIM).as_posix()}` | {len(files)} | {summary.replace('|', chr(92) + '|')} |")
    return "\n".join([*rows, ""])


if __name__ == "__main__":
    if sys.argv[1:] == ["circles"]:
        for group in circles(module_imports()):
            print(" ".join(group))
    else:
        PAGE.write_text(page(PAGE.read_text()))
