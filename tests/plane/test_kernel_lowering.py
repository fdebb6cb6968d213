"""The front end of the kernel's compiler: what it writes does what Python does, and the rest is refused."""

import importlib.util
import inspect
from itertools import product
from pathlib import Path

import pytest

from sim.plane import lowering, machine_code
from sim.plane.assembly import as_objects, assemble
from sim.plane.interface import EdgeSpec, PlaneSpec, SourceSpec, VertexSpec
from sim.plane.lowering import UnsupportedSyntaxError, lowered

binding = pytest.importorskip("llvmlite.binding")

HEAD = "from sim.plane.rows import PlaneState\n\nSEVEN = 7\n\n\n"
DOOR = "def dispatch_operation(w: PlaneState, op: int, t: int, a: int, b: int, c: int, d: int) -> int:\n"
EDGES = (-(2**40), -8, -7, -1, 0, 1, 2, 7, 9, 2**40 + 1)


@pytest.fixture
def file(tmp_path):
    """Writes a text and imports it."""

    def imported(source):
        path = tmp_path / f"text_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(HEAD + source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.fixture
def dispatch_operation(file):
    """(body of a door) -> (Python's door, the compiled one)."""

    def both(body, before=""):
        module = file(before + DOOR + "".join(f"    {line}\n" for line in body.split("\n")))
        return module.dispatch_operation, machine_code.load_entry_point(machine_code._compile([module]))

    return both


def indented(body):
    return inspect.cleandoc(body)


@pytest.mark.parametrize(
    "expression",
    [
        "a + b",
        "a - b",
        "a * b",
        "a & b",
        "a | b",
        "a ^ b",
        "-a",
        "~a",
        "a // SEVEN",
        "a % SEVEN",
        "a // -3",
        "a % -3",
        "a >> 3",
        "a << 3",
    ],
)
def test_arithmetic_is_pythons(dispatch_operation, expression):
    """A quotient of negative numbers goes down, too; a remainder has the sign of the divisor."""
    python, compiled = dispatch_operation(f"return {expression}")

    for a, b in product(EDGES, (-5, 0, 3)):
        assert python(None, 0, 0, a, b, 0, 0) == compiled(0, 0, 0, a, b, 0, 0), (a, b)


@pytest.mark.parametrize("operator", ["//", "%"])
def test_division(dispatch_operation, operator):
    """Every pair of signs.  By zero the compiled text gives 0: the processor would stop the process."""
    python, compiled = dispatch_operation(f"return a {operator} b")

    for a, b in product(EDGES, EDGES):
        assert (python(None, 0, 0, a, b, 0, 0) if b else 0) == compiled(0, 0, 0, a, b, 0, 0), (a, b)


@pytest.mark.parametrize(
    "condition",
    [
        "a == b",
        "a != b",
        "a < b",
        "a <= b",
        "a > b",
        "a >= b",
        "not a < b",
        "a",
        "not a",
        "a < b and b < c",
        "a < b or b < c",
        "a < 2 and (b < 2 or c > 0) and a != c",
        "not (a > 0 or b > 0 and c > 0)",
        "True",
        "a < b and False",
    ],
)
def test_conditions_are_pythons(dispatch_operation, condition):
    python, compiled = dispatch_operation(f"if {condition}:\n    return 1\nreturn 0")

    for a, b, c in product((-2, 0, 1, 3), repeat=3):
        assert python(None, 0, 0, a, b, c, 0) == compiled(0, 0, 0, a, b, c, 0), (a, b, c)


LOOPS = {
    "while with break and continue": """
        n = 0
        while True:
            n += 1
            if n % 3 == 0:
                continue
            if n > a:
                break
            b += n
        return b""",
    "bounds are read once": """
        end = a
        for i in range(b, end):
            end = 0
            d += i
            i = 100
        return d""",
    "a nested loop that returns": """
        for i in range(a):
            for k in range(i):
                if i * k > b:
                    return i * 100 + k
        return -1""",
    "the variable after the loop": """
        i = -1
        for i in range(a):
            if i > b:
                break
        return i""",
    "both branches return": """
        if a > b:
            return 1
        elif a == b:
            return 2
        else:
            return 3""",
    "a truth is a number": """
        found = 0
        found += a > b
        held = a == b
        if held:
            found += 10
        return found""",
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_control_flow_is_pythons(dispatch_operation, body):
    python, compiled = dispatch_operation(indented(body))

    for a, b in product((-1, 0, 1, 4, 9), repeat=2):
        assert python(None, 0, 0, a, b, 0, 0) == compiled(0, 0, 0, a, b, 0, 0), (a, b)


CALLS = """def is_more(a: int, b: int) -> bool:
    return a > b


def least(a: int, b: int) -> int:
    if is_more(a, b):
        return b
    return a


def count(w: PlaneState, by: int) -> None:
    w.g.noted += by
    if by > 2:
        return
    w.channels[1].flush = by


"""


def test_calls_and_memory(dispatch_operation):
    """Fields of 8, 32 and 64 bits, words, rows of rows; what is written is read by Python."""
    body = """
        count(w, is_more(b, a))
        task = w.tasks[t]
        task.served += least(a, b)
        w.words[w.channels[1].gate] = -5
        w.channels[1].credit = -3
        w.elements[2].next = w.channels[1].credit - 1
        if is_more(a, b) or w.elements[2].next != -4:
            return -1
        return w.words[w.channels[1].gate] + w.channels[1].flush"""
    python, compiled = dispatch_operation(indented(body), CALLS)
    vertices = (VertexSpec("a", 1, ((10,),), SourceSpec()), VertexSpec("b", 2, ((10,),)))
    arrays, _ = assemble(PlaneSpec(vertices, (EdgeSpec("e", 0, 1, 0, (100,)),), hosts=(0, 0, 0)), 8)
    objects = as_objects(arrays)

    for a, b in ((1, 2), (7, 2)):
        assert python(objects, 0, 2, a, b, 0, 0) == compiled(
            machine_code.addresses(arrays).ctypes.data, 0, 2, a, b, 0, 0
        )

    assert objects == as_objects(arrays)


@pytest.mark.parametrize(
    "line",
    [
        "x = [1]",
        "x = (1, 2)",
        "x, y = 1, 2",
        "x = 1.5",
        "x = 'a'",
        "x = a / 2",
        "x = a ** 2",
        "x = w.words[1:2]",
        "x = w.nothing",
        "raise ValueError",
        "print(a)",
        "x = a if b else 1",
        "x = y",
        "for i in w.words:\n    a = i",
        "while a:\n    a = 0\nelse:\n    a = 1",
        "w = a",
        "w.words[w] = 1",
        "w.tasks = 1",
        "x = print",
        "if w:\n    a = 1",
        "x = a < b < c",
        "return w",
        "w.tasks[0].nothing = 1",
    ],
)
def test_what_is_not_in_the_language_is_refused(file, line):
    """With its file and line, before anything runs."""
    module = file(DOOR + "".join(f"    {part}\n" for part in line.split("\n")) + "    return 0\n")

    with pytest.raises(UnsupportedSyntaxError, match=rf"{module.__name__}\.py, line 7: "):
        lowered([module], "entry")


def test_the_text_is_lowered_whole():
    """Each function is there once, and the only one that is seen from outside is the entry."""
    made = lowered(machine_code.kernel_modules(), "entry")
    module = binding.parse_assembly(str(made))
    module.verify()

    assert [f.name for f in module.functions if not f.is_declaration and f.linkage == binding.Linkage.external] == [
        "entry"
    ]
    assert {"turn", "run", "advance"} < {f.name for f in module.functions}


def test_what_overlaps_with_nothing_says_so():
    """Without the names of fields LLVM reads everything again after each store."""
    made = str(lowered(machine_code.kernel_modules(), "entry"))

    assert "!tbaa" in made
    assert '"Task.served"' in made
    assert "invariant.load" in made


def test_the_compilers_files_decide_whether_code_fits(tmp_path, monkeypatch):
    """A change of the front end is another kernel."""
    before = machine_code._fingerprint()
    file = tmp_path / "machine_code.py"
    file.write_bytes(Path(machine_code.__file__).read_bytes())
    (tmp_path / "lowering.py").write_bytes(Path(lowering.__file__).read_bytes() + b"\n")
    monkeypatch.setattr(machine_code, "__file__", str(file))

    assert before != machine_code._fingerprint()
