"""The structure of the package: layers, public names, and only public names of other libraries."""

import ast
from collections import Counter
from functools import cache

import pytest

import sim
from docs.pictures import LAYERS
from tests.places import ROOT, SIM
from tests.processes import run_python

PACKAGES = {name: height for height, (packages, _) in enumerate(reversed(LAYERS)) for name in packages}
# Modules of `sim` itself: they may import every package, and nothing but the version is imported from them.
ENTRY = {"__init__", "__main__"}

# Packages of one layer do not import each other; within a package these folders import less than all of it.
INSIDE = {
    "app/cli": {"app/cli", "app/verbs", "app/examples"},
    "app/verbs": {"app/verbs", "app/report"},
    "app/report": {"app/report"},
    "jobs/source": {"jobs/source"},
    "jobs/infer": {"jobs/infer", "jobs/source"},
    "plane/text": {"plane/text", "plane/rows", "plane/interface"},
    "runtime/jobmanager": {"runtime/jobmanager", "runtime/task", "runtime"},
    "runtime/invariants": {"runtime/invariants", "runtime/task", "runtime"},
    "runtime/task": {"runtime/task", "runtime"},
    "storage/media": {"storage/media", "storage"},
}

# The compiler, the event engine and Spark are imported in a few places only.
ONLY_IN = {
    "llvmlite": ("plane/lowering.py", "plane/machine_code.py"),
    "simpy": ("runtime/", "storage/"),
    "pyspark": ("studies/sweeps/", "studies/traces/"),
}


@cache
def modules():
    """Every module of the package."""
    return tuple(sorted(SIM.rglob("*.py")))


@cache
def tree(path):
    return ast.parse(path.read_text())


@cache
def imports(path):
    """(line, dotted module) of each import, lazy ones and those for type checkers included."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: a relative import"
            folder = ROOT.joinpath(*str(node.module).split("."))
            for alias in node.names:
                is_module = (folder / f"{alias.name}.py").exists() or (folder / alias.name / "__init__.py").exists()
                found.append((node.lineno, f"{node.module}.{alias.name}" if is_module else str(node.module)))
    return tuple(found)


def place(path):
    return path.relative_to(ROOT).as_posix()


def package_of(path):
    return path.relative_to(SIM).parts[0].removesuffix(".py")


def test_each_package_has_its_layer():
    assert sorted({package_of(path) for path in modules()} - ENTRY) == sorted(PACKAGES)


def test_packages_import_from_layers_below():
    """Lazy imports and imports for type checkers count as well."""
    wrong = [
        f"{place(path)}:{line}: {name}"
        for path in modules()
        for line, name in imports(path)
        if name.startswith("sim.") and package_of(path) not in ENTRY
        if (below := name.split(".")[1]) != package_of(path) and PACKAGES[below] >= PACKAGES[package_of(path)]
    ]

    assert wrong == []


@pytest.mark.parametrize("folder", INSIDE)
def test_folders_of_a_package_import_what_the_table_allows(folder):
    """`runtime` stands for the modules of the package itself, `runtime/task` for those of the folder."""
    package = folder.partition("/")[0]
    wrong = []
    for path in sorted((SIM / folder).rglob("*.py")):
        for line, name in imports(path):
            if not name.startswith(f"sim.{package}"):
                continue
            module = name.removeprefix("sim.").replace(".", "/")
            home = module if (SIM / module).is_dir() else module.rpartition("/")[0]
            if not {home, module} & INSIDE[folder]:
                wrong.append(f"{place(path)}:{line}: {name}")

    assert wrong == []


def test_no_modules_import_each_other_in_a_circle():
    """A type that two modules need belongs into a third."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in modules()
    }
    edges = {
        name: {other for _, other in imports(path) if other in names and other != name} for name, path in names.items()
    }

    assert circles({name: below for name, below in edges.items() if name != "sim"}) == []


def circles(edges):
    """Names that remain when those that import nothing that remains are taken away, again and again, from both ends."""
    left = dict(edges)
    while True:
        used = {below for name in left for below in left[name]}
        kept = {name: left[name] & left.keys() for name in left if left[name] & left.keys() and name in used}
        if kept == left:
            return sorted(left)
        left = kept


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_engines_are_imported_where_the_table_says(library):
    wrong = [
        f"{place(path)}:{line}"
        for path in modules()
        for line, name in imports(path)
        if name.split(".")[0] == library and not path.relative_to(SIM).as_posix().startswith(ONLY_IN[library])
    ]

    assert wrong == []


def private_uses():
    """(module, name): underscored names of pydantic and SimPy that a module imports, or reads from what it imported of them."""
    found = Counter()
    for path in modules():
        of_library = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                of_library |= {
                    (alias.asname or alias.name).split(".")[0] for alias in node.names if is_library(alias.name)
                }
            elif isinstance(node, ast.ImportFrom) and is_library(str(node.module)):
                of_library |= {alias.asname or alias.name for alias in node.names}
                parts = [*str(node.module).split("."), *(alias.name for alias in node.names)]
                found.update((place(path), part) for part in parts if part.startswith("_"))
        for node in ast.walk(tree(path)):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in of_library and is_private(attr):
                    found[place(path), attr] += 1
    return found


def is_library(name):
    return name.split(".", maxsplit=1)[0] in {"pydantic", "pydantic_core", "simpy"}


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def test_only_public_names_of_libraries_are_used():
    """pydantic and SimPy may change the others in any release."""
    assert list(private_uses()) == []


def test_public_names_are_there_and_lazy():
    """`import sim` loads no package; each public name has a home, and `from sim import *` gives exactly these."""
    code = "import sys, sim; print(*sorted(name for name in sys.modules if name.startswith('sim.')))"
    loaded = run_python("-c", code, check=True).stdout.split()

    assert loaded == []
    assert sorted(sim.__all__) == sorted(sim._HOME)
    assert [name for name in sim.__all__ if not hasattr(sim, name)] == []


def test_every_module_opens_with_what_it_is_about():
    silent = [place(path) for path in modules() if tree(path).body and ast.get_docstring(tree(path)) is None]

    assert silent == []


def test_packages_have_at_most_two_levels():
    assert [place(path) for path in modules() if len(path.relative_to(SIM).parts) > 3] == []


def test_each_package_has_tests():
    """tests/x/ holds the tests of sim/x/."""
    assert [name for name in PACKAGES if not any((ROOT / "tests" / name).rglob("test_*.py"))] == []


def test_test_files_have_names_of_their_own():
    """A name in the summary says which file it is."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))

    assert [name for name, count in names.items() if count > 1] == []


def test_the_constraints_name_no_registry():
    """Versions are pinned, where they come from is the machine's business."""
    assert "://" not in (ROOT / "constraints.txt").read_text()
