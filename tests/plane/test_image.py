"""Machine code as one piece of memory does what LLVM's loader makes of the same object file."""

import ctypes
import platform
import sys

import pytest

from sim.plane.kernel import image, machine_code

pytestmark = pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="other systems leave it to LLVM")

ENTRY = "enter"
TABLE = """
    @table = internal constant [4 x i64] [i64 7, i64 11, i64 13, i64 17]
    define internal i64 @looked_up(i64 %i) noinline {
        %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
        %value = load volatile i64, ptr %place
        ret i64 %value
    }
    define internal i64 @scaled(i64 %i) noinline {
        %real = sitofp i64 %i to double
        %more = fmul double %real, 2.5
        %whole = fptosi double %more to i64
        ret i64 %whole
    }
    define i64 @enter(i64 %i) {
        %a = call i64 @looked_up(i64 %i)
        %b = call i64 @scaled(i64 %a)
        ret i64 %b
    }"""


def object_file(text: str) -> bytes:
    binding = pytest.importorskip("llvmlite.binding")
    machine = machine_code._machine(binding)  # as the kernel's own: it initialises LLVM
    return machine.emit_object(binding.parse_assembly(text))


def call(address: int, *numbers: int) -> list[int]:
    enter = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)
    return [enter(number) for number in numbers]


def test_functions_constants_and_the_calls_between_them_are_found():
    """Tables, numbers in a pool of constants, functions that are not inlined: each by its address."""
    made = image.image_of(object_file(TABLE), ENTRY)
    address, mapped = image.loaded(made)

    assert [17, 27, 32, 42] == call(address, 0, 1, 2, 3)
    assert mapped is not None


def test_it_runs_at_any_address():
    """Each copy has addresses of its own: the file is the same for all processes."""
    made = image.image_of(object_file(TABLE), ENTRY)
    copies = [image.loaded(made) for _ in range(2)]

    assert copies[0][0] != copies[1][0]
    assert [[42], [42]] == [call(address, 3) for address, _ in copies]


@pytest.mark.parametrize(
    "text",
    [
        "declare i64 @labs(i64)\ndefine i64 @enter(i64 %i) { %a = call i64 @labs(i64 %i) ret i64 %a }",
        "@n = internal global i64 5\ndefine i64 @enter(i64 %i) { store volatile i64 %i, ptr @n %a = load volatile i64, ptr @n ret i64 %a }",
        "define i64 @another(i64 %i) { ret i64 %i }",
    ],
    ids=["it calls a library", "it writes into its data", "it has no such entry"],
)
def test_an_object_file_that_needs_more_is_left_to_llvm(text):
    assert image.image_of(object_file(text), ENTRY) is None


def test_a_file_of_another_kind_has_no_image():
    code = object_file(TABLE)
    other_processor = code[:18] + b"\xb7\0" + code[20:]

    assert [None, None, None] == [image.image_of(given, ENTRY) for given in (b"", b"\xcf\xfa\xed\xfe" + bytes(100), other_processor)]
    assert not image.is_image(code)


def test_code_that_cannot_be_written_to_is_what_is_called():
    """Memory that is both written to and called is refused by hardened systems."""
    made = image.image_of(object_file(TABLE), ENTRY)
    address, _ = image.loaded(made)
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[:2] for line in maps]

    (rights,) = [right for place, right in ranges if int(place.split("-")[0], 16) <= address < int(place.split("-")[1], 16)]
    assert rights == "r-xp"
