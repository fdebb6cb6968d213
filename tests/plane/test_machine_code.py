"""The kernel's machine code: kept where it can be, loaded without the compiler, never trusted if it is not whole."""

import os
import pickle
import platform
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from sim.plane import compiled_kernel, machine_code
from tests.places import ROOT
from tests.processes import run_python


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where machine code is kept meanwhile."""
    monkeypatch.setenv("CKPTSIM_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_damaged_file_counts_as_none(folder):
    """A machine that crashed, a disk that was full: what is loaded into the process is what was made."""
    machine_code._store(b"code", "kernel.o")
    file = folder / "kernel.o"

    assert machine_code._read(file) == b"code"
    file.write_bytes(file.read_bytes()[:-1])
    assert machine_code._read(file) is None
    assert machine_code._read(folder / "none.o") is None


def test_code_is_kept_in_the_first_place_that_can_be_written(tmp_path, monkeypatch):
    """A read-only installation: the user's cache; nowhere at all: nothing is said, every process compiles."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(machine_code, "cache_folders", lambda: iter([tmp_path / "file" / "never", tmp_path / "cache"]))
    machine_code._store(b"code", "kernel.o")

    assert [tmp_path / "cache" / "kernel.o"] == list(tmp_path.glob("**/*.o"))

    monkeypatch.setattr(machine_code, "cache_folders", lambda: iter([tmp_path / "file" / "never"]))
    machine_code._store(b"code", "other.o")

    assert list(tmp_path.glob("**/other.o")) == []


def test_the_users_setting_is_the_only_place(folder):
    assert [folder] == list(machine_code.cache_folders())


def test_places_without_a_setting(monkeypatch, tmp_path):
    """Beside the text first: a wheel that is copied with its code brings it along."""
    monkeypatch.delenv("CKPTSIM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", "/of/all")
    cache, temporary = Path(machine_code.__file__).parent / "__pycache__", Path("/of/all") / f"ckptsim-{os.getuid()}"

    assert [cache, tmp_path / "ckptsim", temporary] == list(machine_code.cache_folders())


def test_a_user_without_a_home_keeps_code_all_the_same(monkeypatch):
    """A container may run a number that no file of users knows: asking for its home is an error."""

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("CKPTSIM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    assert ["__pycache__", f"ckptsim-{os.getuid()}"] == [place.name for place in machine_code.cache_folders()]


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """A package and a home where nothing can be written.  Returns the folder for temporary files."""
    monkeypatch.delenv("CKPTSIM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(machine_code, "__file__", "/dev/null/machine_code.py")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_where_nothing_else_can_be_written_the_temporary_folder_keeps_code(read_only):
    """The next process does not compile."""
    *others, place = machine_code.cache_folders()
    machine_code._store(b"code", "kernel.o")

    assert machine_code._read(place / "kernel.o") == b"code"
    assert [machine_code._read(other / "kernel.o") for other in others] == [None, None]
    assert place.stat().st_mode == 0o40700


@pytest.mark.parametrize("trap", ["open", "link"])
def test_code_that_another_user_may_have_written_is_not_loaded(read_only, trap):
    """Everybody may make a folder of our name among temporary ones, or a link: nothing is read there, nothing kept."""
    *_, place = machine_code.cache_folders()
    folder = read_only / "elsewhere"
    folder.mkdir(mode=0o700)
    if trap == "link":
        place.symlink_to(folder)
    else:
        place.mkdir()
        place.chmod(0o777)
    machine_code._store(b"code", "kernel.o")

    assert list(read_only.glob("**/kernel.o")) == []
    (place / "kernel.o").write_bytes(machine_code._checksum(b"code") + b"code")
    assert machine_code._read(place / "kernel.o") is None


def test_code_of_another_process_spares_the_compiler(tmp_path):
    """No cache holds anything, and the sent code runs; code under another name is passed over, and that is known."""
    (tmp_path / "kernel").write_bytes(pickle.dumps(compiled_kernel()))
    program = """
import pickle, sys, warnings
from sim import plane
warnings.simplefilter("ignore")
name, code = pickle.load(open(sys.argv[1], "rb"))
print(plane.warm((name + sys.argv[2], code)), plane.compiled_kernel()[0] == name)
"""

    def output(suffix):
        environment = os.environ | {"CKPTSIM_CACHE_DIR": str(tmp_path / suffix / "none")}
        return run_python("-c", program, tmp_path / "kernel", suffix, check=True, env=environment).stdout

    assert output("") == "False True\n"
    assert output("x") == "True True\n"


def test_a_machine_where_nothing_can_be_written_compiles_once(tmp_path):
    """A package that is read only and a user without a home: the second process loads what the first one kept."""
    shutil.copytree(ROOT / "sim", tmp_path / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "sim" / "plane" / "__pycache__").touch()  # a file: not even root can write below it
    (tmp_path / "temporary").mkdir()
    program = "from sim.plane import warm; print(warm())"
    environment = {name: value for name, value in os.environ.items() if name not in ("CKPTSIM_CACHE_DIR", "HOME")}
    environment |= {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}

    def output():
        return run_python("-c", program, cwd=tmp_path, check=True, env=environment).stdout

    assert [output(), output()] == ["True\n", "False\n"]


def test_code_of_another_text_or_processor_is_not_taken(monkeypatch):
    """The file's name says what it was made from, for what."""
    name = machine_code._key()

    monkeypatch.setattr(machine_code, "_fingerprint", lambda: "another text")
    assert name != machine_code._key()
    monkeypatch.undo()
    monkeypatch.setattr(machine_code, "_processor", lambda: "another processor")
    assert name != machine_code._key()


@pytest.fixture(scope="module")
def object_file():
    """The kernel's object file for this machine, which its own loader understands."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("object files are mapped on Linux on x86-64 only")
    _, code = compiled_kernel()
    return code


@pytest.mark.parametrize("change", ["kind of relocation", "undefined symbol", "other processor", "not ELF"])
def test_an_object_file_that_needs_a_linker_is_left_to_llvm(object_file, change):
    """Its own loader knows one kind of relocation, to symbols in the file; anything else would crash the process."""
    code = bytearray(object_file)
    begin, count = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    sections = np.frombuffer(code, machine_code._SECTION, count, begin)
    match change:
        case "kind of relocation":
            (section, *_) = sections[sections["type"] == machine_code._RELOCATIONS]
            code[int(section["offset"]) + 8] = 2  # R_X86_64_PC32
        case "undefined symbol":
            (table,) = sections[sections["type"] == machine_code._SYMBOLS]
            for symbol in range(int(table["size"]) // machine_code._SYMBOL.itemsize):
                place = int(table["offset"]) + symbol * machine_code._SYMBOL.itemsize + 6
                code[place : place + 2] = bytes(2)
        case "other processor":
            code[18] = 183  # AArch64
        case "not ELF":
            code[:4] = b"\xcf\xfa\xed\xfe"

    assert machine_code.map_object_file(bytes(code), machine_code.ENTRY_POINT) is None
