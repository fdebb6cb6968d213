"""The rules of the house: who may import whom, which words belong to which room, what belongs into one file and one room."""

import ast
import re
from collections.abc import Mapping
from itertools import pairwise

import pytest

from docs.house import ROOT, SIM, STOREYS, circles, imports, module_imports, modules, room

# A room may import the rooms named here and itself, nothing else of sim/.  Read upwards: what stands lower knows more.
LEAVES = {"address", "condition", "foreign", "model", "packed_records", "prose", "quantities", "units", "whole_file"}
BELOW_RUNTIME = LEAVES | {"protocol", "plane", "storage", "state", "metrics", "checkers"}
BELOW_CLI = BELOW_RUNTIME | {"runtime", "scenario", "analysis", "sheet"}
BELOW_VERBS = BELOW_CLI | {
    "recordings", "evidence", "cells", "comparison", "explain", "history", "report", "sweeps", "advice", "timeline", "traces", "watching",
    "differences",
}  # fmt: skip
MAY_IMPORT: dict[str, set[str]] = {
    "address": set(),
    "condition": set(),
    "examples": set(),  # files to begin with
    "folder_lock": {"foreign"},
    "foreign": set(),
    "sheet": {"whole_file"},
    "stand_ins": set(),  # values that mean "unknown"
    "units": set(),
    "whole_file": set(),
    "packed_records": set(),
    "prose": set(),
    "quantities": {"prose"},  # names, units and words
    "model": {"packed_records", "quantities", "units"},
    "series": {"foreign", "stand_ins", "units"},  # what a column in a table of others means
    "scenario": LEAVES | {"series"},
    "protocol": LEAVES,  # never the plane ...
    "plane": LEAVES,  # ... nor the plane the protocol
    "storage": LEAVES,
    "state": LEAVES,  # what is written; how long that takes is storage's business
    "metrics": LEAVES,
    "checkers": LEAVES | {"metrics"},  # they read the journal
    "runtime": BELOW_RUNTIME,
    "analysis": {"condition", "foreign", "prose", "quantities", "units"},  # reads tables only
    "recordings": LEAVES | {"scenario", "series", "stand_ins"},  # a recording becomes a scenario
    "evidence": BELOW_CLI | {"recordings", "cells"},  # predicted beside observed
    "cells": BELOW_CLI,  # single runs
    "comparison": BELOW_CLI | {"cells", "folder_lock"},  # what `run` does
    "explain": BELOW_CLI | {"cells", "comparison"},  # runs again, watched closely
    "history": BELOW_CLI | {"evidence", "explain", "recordings", "stand_ins"},  # checkpoints that really happened, in the same words
    "timeline": BELOW_CLI | {"explain", "history", "recordings"},  # the same, as a picture
    "report": BELOW_CLI | {"cells", "comparison", "evidence", "explain", "history", "recordings"},  # results as a page
    "sweeps": BELOW_CLI | {"cells", "folder_lock", "series"},
    "advice": BELOW_CLI | {"cells", "evidence", "series", "sweeps"},  # it tries settings by sweeps
    "traces": BELOW_CLI | {"recordings", "cells", "series", "sweeps"},  # how the package gets to where Spark works
    "watching": BELOW_CLI | {"evidence", "folder_lock", "history", "recordings", "report"},  # a job that runs, look by look
    "differences": BELOW_CLI | {"cells", "comparison", "evidence", "explain", "report", "watching"},  # of two scenarios or answers
    "verbs": BELOW_VERBS,  # what the command and Python have in common
    "api": BELOW_VERBS | {"verbs"},
    "cli": BELOW_VERBS | {"examples", "verbs"},
    "__init__": {"api", "scenario", "runtime", "verbs"},  # the front door
    "__main__": {"cli"},
}

# What a folder inside a room may import of the rest of its room.  A folder that encloses it stands for the files that lie flat there.
INSIDE: dict[str, set[str]] = {
    "advice/answer": {"advice", "advice/levers", "advice/running"},
    "advice/future": set(),
    "advice/inputs": {"advice", "advice/future"},
    "advice/running": set(),
    "advice/levers": {"advice", "advice/running"},
    "analysis/strategies": {"analysis"},
    "analysis/sweeps": {"analysis", "analysis/strategies"},
    "cli/console": set(),  # no verb
    "evidence/envelope": set(),
    "evidence/what_ifs": set(),
    "evidence/backtest": {"evidence", "evidence/what_ifs"},
    "model/catalogs": set(),
    "model/randomness": {"model", "model/catalogs"},
    "plane/seam": set(),
    "plane/kernel": {"plane/seam"},
    "plane/kernel/text": {"plane/seam", "plane/kernel/rows"},
    "plane/kernel/text/channels": {"plane/kernel/rows", "plane/kernel/text"},
    "plane/kernel/text/task": {"plane/kernel/rows", "plane/kernel/text", "plane/kernel/text/channels"},
    "plane/kernel/text/verbs": {"plane/kernel/rows", "plane/kernel/text", "plane/kernel/text/channels", "plane/kernel/text/task"},
    "protocol/barriers": {"protocol"},
    "protocol/strategies": {"protocol", "protocol/barriers"},
    "protocol/task": {"protocol", "protocol/strategies", "protocol/barriers"},  # coordinator and tasks meet as events only
    "protocol/coordinator": {"protocol", "protocol/strategies"},
    "protocol/commit": {"protocol"},
    "protocol/recovery": {"protocol"},
    "protocol/snapshots": {"protocol"},
    "storage/bandwidth": {"storage"},
    "storage/media": {"storage", "storage/bandwidth"},
    "scenario/text": set(),
    "scenario/grammar": {"scenario/text"},
    "recordings/source": set(),
    "recordings/infer": {"recordings/source"},
    "recordings/observe": {"recordings/source", "recordings/infer"},
    "sweeps/file": set(),
    "sweeps/spark": set(),
    # Only `run` knows all hosts; the others know ports, which lie flat.
    "report/charts": set(),  # they know no checkpoint
    "runtime/setup": {"runtime"},
    "runtime/observe": {"runtime"},
    "runtime/accounts": {"runtime", "runtime/observe"},
    "runtime/taskmanager": {"runtime"},
    "runtime/task": {"runtime", "runtime/taskmanager"},
    "runtime/jobmanager": {"runtime", "runtime/observe", "runtime/accounts"},
    "runtime/run": {"runtime", "runtime/setup", "runtime/observe", "runtime/accounts", "runtime/task", "runtime/jobmanager"},
}
# What the flat files of a room may import of its folders.
FLAT: dict[str, set[str]] = {"evidence": set(), "runtime": set(), "protocol": set(), "model": {"model/catalogs"}}

# The compiler and the event engine each have one door.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "llvmlite": ("plane/kernel/lowering.py", "plane/kernel/machine_code.py"),
    "simpy": ("runtime/", "storage/"),
    "pyspark": ("sweeps/spark/", "traces/"),
}

# Folders of tests that belong to no room: whole runs, a real Flink, broken rules, and what the benchmarks compare with.
NO_ROOM = {"benchmarks", "claims", "fuzz", "injections", "laws", "live", "mutations", "oracle", "worlds"}

SUBJECT_LINES = 60  # so many lines of definitions that refer to no other definition of their file are a subject of their own
TWO_LISTS = {"sim/protocol/task_vocabulary.py": "events and commands of one machine: they meet in it"}
SUBJECT_FILES = 4  # so many files of a room that know none of its others want a room of their own


def test_imports_point_one_way():
    """Each room imports only what the table above allows."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {room(path)} must not import {name}"
        for path in modules()
        for line, name in imports(path)
        if name.startswith("sim.") and name.split(".")[1] not in MAY_IMPORT.get(room(path), set()) | {room(path)}
    ]

    assert wrong == []


@pytest.mark.parametrize("folder", INSIDE)
def test_folders_of_a_room_point_one_way(folder):
    """A folder imports itself, other rooms, and of its own room what the table allows."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {folder} must not import {name}"
        for path in sorted((SIM / folder).rglob("*.py"))
        for line, name in imports(path)
        if name.startswith(f"sim.{folder.split('/')[0]}.")
        and not any(_stands_for(allowed, name, folder) for allowed in {folder, *INSIDE[folder]})
    ]

    assert wrong == []


@pytest.mark.parametrize("folder", FLAT)
def test_flat_files_of_a_room_point_one_way(folder):
    """Files that lie flat in a room import each other, and of its folders what the table allows."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: must not import {name}"
        for path in sorted((SIM / folder).glob("*.py"))
        for line, name in imports(path)
        if name.startswith(f"sim.{folder}.") and _folder(name) not in {folder, *FLAT[folder]}
    ]

    assert wrong == []


def test_the_oracle_knows_the_seam_and_not_the_kernel():
    """Else it would repeat the kernel's mistakes."""
    allowed = ("sim.plane.seam", "sim.model", "tests.oracle")

    assert [] == [
        f"{path.relative_to(ROOT)}:{line}: must not import {name}"
        for path in sorted((ROOT / "tests" / "oracle").glob("*.py"))
        for line, name in imports(path)
        if name.startswith(("sim", "tests")) and not f"{name}.".startswith(tuple(f"{place}." for place in allowed))
    ]


def test_the_package_imports_neither_tests_nor_benchmarks():
    assert [] == [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules()
        for line, name in imports(path)
        if name.split(".")[0] in {"tests", "benchmarks", "docs"}
    ]


def _stands_for(allowed: str, name: str, folder: str) -> bool:
    if folder.startswith(f"{allowed}/"):  # it encloses the folder
        return _folder(name) == allowed
    return f"{name}.".startswith(f"sim.{allowed.replace('/', '.')}.")


def _folder(name: str) -> str:
    place = SIM.joinpath(*name.split(".")[1:])
    return (place if place.is_dir() else place.parent).relative_to(SIM).as_posix()


def test_the_table_itself_points_one_way():
    """No two rooms may import each other: the table has no cycle, so `protocol` and `plane` cannot meet by a detour."""
    reachable = {name: set(below) for name, below in MAY_IMPORT.items()}
    for _ in MAY_IMPORT:
        for below in reachable.values():
            below.update(*(reachable[name] for name in list(below)))

    assert [] == [name for name, below in reachable.items() if name in below]
    assert "plane" not in reachable["protocol"]
    assert "protocol" not in reachable["plane"]


def test_no_modules_import_each_other_in_a_circle():
    """Imports for type checkers count as well: who needs the other only as a type knows a Protocol."""
    assert [] == circles(module_imports())


def test_every_room_stands_in_the_table():
    """A new room says first what it may know."""
    assert {room(path) for path in modules()} <= set(MAY_IMPORT)


def test_no_room_imports_from_a_storey_above():
    """The picture of the house has each room once, and what may be imported lies beside it or below."""
    height = {name: -number for number, storey in enumerate(STOREYS) for name in storey.rooms}

    assert sorted(height) == sorted(name for storey in STOREYS for name in storey.rooms)
    assert set(height) == {name for name in MAY_IMPORT if not name.startswith("__")}
    assert [] == [(name, below) for name in height for below in MAY_IMPORT[name] if height[below] > height[name]]


@pytest.mark.parametrize("library", ONLY_IN)
def test_one_door_per_engine(library):
    """Compiler, event engine and Spark are imported where the house says, nowhere else."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules()
        for line, name in imports(path)
        if name.split(".")[0] == library and not path.relative_to(SIM).as_posix().startswith(ONLY_IN[library])
    ]

    assert wrong == []


def groups(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Names that know each other, in either direction or by way of others; the largest group first."""
    both = {name: {other for other in known if other in edges} for name, known in edges.items()}
    for name, known in list(both.items()):
        for other in known:
            both[other] = both[other] | {name}
    left, found = set(both), []
    while left:
        group, new = set[str](), {min(left)}
        while new:
            group |= new
            new = set().union(*(both[name] for name in new)) - group
        left -= group
        found.append(sorted(group))
    return sorted(found, key=lambda group: -len(group))


def subjects(source: str) -> list[tuple[int, list[str]]]:
    """(lines, names) of definitions of a file that refer to each other; the largest first."""
    lines, known = dict[str, int](), dict[str, set[str]]()
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.Assign(targets=targets):
                names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            case _:
                continue
        for name in names:
            lines[name] = lines.get(name, 0) + (node.end_lineno - node.lineno + 1 if name == names[0] else 0)
            known[name] = known.get(name, set()) | {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            known[name] |= {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return sorted(((sum(lines[name] for name in group), group) for group in groups(known)), reverse=True)


def test_a_file_has_one_subject():
    """Its definitions refer to each other, however long it is."""
    found = {path.relative_to(ROOT).as_posix(): subjects(path.read_text())[1:] for path in modules()}

    assert set(TWO_LISTS) == {name for name, others in found.items() if others and others[0][0] >= SUBJECT_LINES}


def test_two_subjects_are_found():
    first, second = ("\n".join(f"def {name}{i}(): return {name}{i + 1}()" for i in range(3)) for name in "ab")

    assert [(3, ["b0", "b1", "b2", "b3"][:3]), (3, ["a0", "a1", "a2"])] == subjects(f"{first}\n{second}")
    assert 1 == len(subjects(f"{first}\n{second}\ndef both(): a0(), b0()"))


ROOMS = sorted({path.parent for path in modules()} - {SIM})


def test_no_folder_holds_one_file():
    """A folder is for files that have something in common."""
    assert [] == [path.relative_to(ROOT).as_posix() for path in ROOMS if len([*path.glob("*.py"), *path.glob("*/__init__.py")]) == 2]


def test_files_of_a_room_know_each_other():
    """Two groups of files that know nothing of each other are two rooms; files in folders of the room may stand between them."""
    known, wrong = module_imports(), list[list[str]]()
    for path in ROOMS:
        name = ".".join(path.relative_to(ROOT).parts)
        here = {module: known[module] for module in known if module == name or module.startswith(f"{name}.")}
        flat = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in path.glob("*.py")}
        apart = [files for group in groups(here) if len(files := [module for module in group if module in flat]) >= SUBJECT_FILES]
        wrong += apart[1:]

    assert [] == wrong


@pytest.mark.parametrize("folder", ROOMS, ids=lambda path: path.relative_to(SIM).as_posix())
def test_every_room_introduces_itself(folder):
    """First what it is; then, in a paragraph of its own, who calls it and what it knows or may not know."""
    what, *paragraphs = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").split("\n\n")

    assert what, "what it is"
    assert [] != [text for text in paragraphs if re.search(r"\bcall(s|ed)?\b", text) and re.search(r"\bknows\b", text)]


def test_every_module_opens_with_what_it_is_about():
    """A module that holds code has a docstring."""
    silent = [path for path in modules() if (tree := ast.parse(path.read_text())).body and ast.get_docstring(tree) is None]

    assert [] == silent


def test_the_tests_mirror_the_package():
    """tests/x/ holds the tests of sim/x/, tests/test_y.py those of sim/y.py, and every room that holds code is tested."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("test_*.py"))}
    rooms = {path.name for path in SIM.iterdir() if any(file.stat().st_size for file in path.rglob("*.py"))}

    assert set() == folders - rooms - NO_ROOM, "folders of tests without a room"
    files = {path.stem for path in SIM.glob("*.py") if not path.stem.startswith("_")}

    assert set() == rooms - folders, "rooms without tests"
    assert set() == {name for name in files if not (ROOT / "tests" / f"test_{name}.py").exists()}, "files without tests"


def test_test_files_have_names_of_their_own():
    """A name in the summary says which file it is."""
    names = sorted(path.name for path in (ROOT / "tests").rglob("test_*.py"))

    assert [] == [first for first, second in pairwise(names) if first == second]


def test_the_constraints_name_no_registry():
    """Versions are pinned, where they come from is the machine's business."""
    assert "://" not in (ROOT / "constraints.txt").read_text()
