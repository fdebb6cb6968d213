"""Compile the kernel's source with LLVM, cache the machine code on disk, and load it.

The code is one function that works on integers and memory and does not use Python.  So every process with the same
source and processor can execute it, also one without LLVM: on Linux on x86-64 its object file is mapped into memory as
it is, and only the absolute addresses in it are filled in (`map_object_file`).  Loading LLVM for that would cost each
process 53 MB and 0.08 CPU seconds.  Other systems, and object files that need more than that, are left to LLVM.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import mmap
import os
import pkgutil
import platform
import stat
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from sim.model.files import replace_file
from sim.plane import interface, rows, text
from sim.plane.rows import PlaneState
from sim.plane.text.loop import Kernel

ENTRY_POINT = "kernel_entry"
"""Name of the only exported symbol."""
CACHE_DIR_VARIABLE = "CKPTSIM_CACHE_DIR"
"""Name of an environment variable.  If it is set, only the directory it names is used as cache."""
_CHECKSUM_BYTES = 16  # bytes at the start of each cached file
_loaded: list[Any] = []
"""Mapped memory, or execution engines of LLVM, of loaded code, which must stay alive."""
_codes: dict[str, bytes] = {}
"""Machine code by file name, compiled or read by this process or received with `import_code`."""
_compiled_names: list[str] = []
"""File names of the code that this process has compiled."""


@cache
def load_compiled_entry_point() -> Callable[..., int] | None:
    """Return the entry point of the compiled kernel, or None with a warning if llvmlite cannot be imported.

    The first argument of the entry point is the address of the array that `addresses` returns.  The result is cached.
    """
    entry_point, reason = _load_or_compile()
    if reason:
        warnings.warn(f"the data plane runs interpreted and is much slower: {reason}", RuntimeWarning, stacklevel=2)
    return entry_point


def export_code() -> tuple[str, bytes] | None:
    """Return (file name, machine code) for `import_code` in another process, or None without a compiler."""
    entry_point, _ = _load_or_compile()
    return next(iter(_codes.items()), None) if entry_point else None


def import_code(name: str, code: bytes) -> None:
    """Accept machine code of another process.

    It is used only if this process has the same source, compiler and processor, so that the names are equal.
    """
    _codes.setdefault(name, code)


def has_compiled() -> bool:
    """Return whether this process compiled the kernel itself."""
    return bool(_compiled_names)


def addresses(state: PlaneState) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the address of each array of the state, for the entry point.  The arrays must stay alive during the call."""
    return np.array([cast(Any, array).ctypes.data for array in state], np.int64)


def kernel_modules() -> list[ModuleType]:
    """Return the kernel's source modules, sorted by path."""
    return [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(text.__path__, f"{text.__name__}.")
        if not info.ispkg
    ]


@cache
def _load_or_compile() -> tuple[Callable[..., int] | None, str]:
    """Return (entry point, ""), or (None, reason) if there is none."""
    try:
        name = f"kernel-{_key()}.o"
        sent = _codes.pop(name, None)
        _codes.clear()  # code for another processor is discarded
        code = sent or next(filter(None, (_read(folder / name) for folder in cache_folders())), None)
        if code is None:
            code = _compile(kernel_modules())
            _compiled_names.append(name)
            _store(code, name)
        _codes[name] = code
        return load_entry_point(code), ""
    except ImportError as error:
        return None, f"llvmlite cannot be imported: {error}"


def load_entry_point(code: bytes) -> Callable[..., int]:
    """Load an object file into this process, and return its entry point."""
    address = map_object_file(code, ENTRY_POINT) or _load_with_llvm(code)
    # the result and all arguments are int64; the state is passed as an address
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + Kernel.dispatch_operation.__code__.co_argcount))(address)


def cache_folders() -> Iterator[Path]:
    """Yield the folders in which machine code is searched and, if they are writable, stored.

    If the environment variable CACHE_DIR is set, its folder is the only one.  Otherwise they are a folder next to the
    source, one in the user's cache, and the user's own one in the system's temporary directory.
    """
    if chosen := os.environ.get(CACHE_DIR_VARIABLE):
        yield Path(chosen)
        return
    yield Path(__file__).parent / "__pycache__"
    with suppress(RuntimeError):  # a container may run a user who has neither a name nor a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ckptsim"
    if temporary := _temporary():
        yield temporary


def _temporary() -> Path | None:
    """Return the user's own folder in the shared temporary directory, or None if there is none."""
    try:
        return Path(tempfile.gettempdir()) / f"ckptsim-{os.getuid()}"
    except OSError:
        return None


def _key() -> str:
    """Return a digest of source, system and processor.  Code can be used only if all three are the same."""
    parts = (_fingerprint(), platform.system(), platform.machine(), _processor())
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=10).hexdigest()


_PROCESSOR_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


def _processor() -> str:
    """Return model and features of the processor: as Linux describes it on x86-64, or as LLVM does elsewhere."""
    with suppress(OSError):
        first, *_ = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")
        fields = {name.strip(): value for name, _, value in (line.partition(":") for line in first.splitlines())}
        if fields.keys() >= set(_PROCESSOR_FIELDS):
            return "".join(fields[name] for name in _PROCESSOR_FIELDS)
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def _fingerprint() -> str:
    """Return a digest of the source of the kernel, of the modules it imports, and of the code that lowers it to LLVM."""
    digest = hashlib.blake2b(digest_size=6)
    compiler = [__file__, str(Path(__file__).with_name("lowering.py"))]
    for path in (*(str(module.__file__) for module in (*kernel_modules(), interface, rows)), *compiler):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the machine code in a file, or None if it is missing, incomplete, or could have been written by another user."""
    try:
        if not _is_private(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    code = content[_CHECKSUM_BYTES:]
    return code if content[:_CHECKSUM_BYTES] == _checksum(code) else None


def _store(code: bytes, name: str) -> None:
    """Store the code in the first writable folder.  If there is none, every process compiles the kernel itself."""
    for folder in cache_folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700 if folder == _temporary() else 0o777)
            if not _is_private(folder):
                continue
            replace_file(folder / name, lambda path: path.write_bytes(_checksum(code) + code))
            return


def _is_private(folder: Path) -> bool:
    """Return whether no other user can write to the folder.  Only folders in the shared temporary directory are checked."""
    if folder != _temporary():
        return True
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _checksum(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_CHECKSUM_BYTES).digest()


def _machine(binding: Any) -> Any:
    """Return LLVM's target machine for this processor, for code that is loaded into this process."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


def _compile(files: Sequence[ModuleType]) -> bytes:
    """Compile all source modules as one LLVM module, and return the object file."""
    from llvmlite import binding

    from sim.plane.lowering import lowered

    machine = _machine(binding)
    module = binding.parse_assembly(str(lowered(files, ENTRY_POINT)))
    module.triple, module.data_layout = binding.get_process_triple(), str(machine.target_data)
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)  # type: ignore[no-any-return]


def _load_with_llvm(code: bytes) -> int:
    """Load an object file with LLVM, and return the address of its entry point."""
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(binding))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    return engine.get_function_address(ENTRY_POINT)  # type: ignore[no-any-return]


# ---- Object files in the ELF format (System V Application Binary Interface, chapter 4, and its supplement for AMD64).
#
#   header    sections' contents, at offsets that keep their alignment                  table of sections
#   |------|--.text--|--.rodata--|--...--|--.rela.text--|--.rela.rodata--|--.symtab--|--------------|
#                 ^                             |
#                 +--- address of a symbol <----+   a relocation: (where, which symbol, addend)
#
# The file is copied to memory as a whole, so that each section is at the file's address + its offset.  The compiler uses
# 64-bit absolute addresses (code model "large", as for all code that is loaded at run time), so there is one kind of relocation.

_X86_64 = 62
_ABSOLUTE_64 = 1  # R_X86_64_64
_SYMBOLS, _RELOCATIONS, _NO_CONTENT = 2, 4, 8  # types of sections
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00  # sections of symbols that are elsewhere, or have no address
_SECTION = np.dtype(
    {
        "names": ["name", "type", "flags", "address", "offset", "size", "link", "target", "alignment", "entry_size"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u8", "<u8"],
    }
)
_SYMBOL = np.dtype(
    {
        "names": ["name", "info", "other", "section", "value", "size"],
        "formats": ["<u4", "u1", "u1", "<u2", "<u8", "<u8"],
    }
)
_RELOCATION = np.dtype({"names": ["offset", "type", "symbol", "addend"], "formats": ["<u8", "<u4", "<u4", "<i8"]})


def map_object_file(code: bytes, function: str) -> int | None:
    """Map an object file into memory, and return the address of a function in it.

    Return None if only LLVM can load it: not ELF for x86-64 on Linux, a relocation other than R_X86_64_64, or a symbol that
    is not in the file.
    """
    if platform.system() != "Linux" or code[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", code, 18) != (_X86_64,):
        return None
    (begin,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
    sections = np.frombuffer(code, _SECTION, count, begin)

    def rows(section: Any, kind: np.dtype[Any]) -> Any:
        return np.frombuffer(code, kind, int(section["size"]) // kind.itemsize, int(section["offset"]))

    (table,) = sections[sections["type"] == _SYMBOLS]
    symbols = rows(table, _SYMBOL)
    relocations = [(section, rows(section, _RELOCATION)) for section in sections[sections["type"] == _RELOCATIONS]]
    for _, entries in relocations:
        used = symbols["section"][entries["symbol"]]
        if ((entries["type"] != _ABSOLUTE_64) | (used == _UNDEFINED) | (used >= _FIRST_RESERVED)).any():
            return None
    if sections["size"][sections["type"] == _NO_CONTENT].any():
        return None
    memory = mmap.mmap(-1, len(code))
    memory.write(code)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    places = base + sections["offset"][np.where(symbols["section"] < count, symbols["section"], 0)] + symbols["value"]
    for section, entries in relocations:
        offsets = sections["offset"][section["target"]] + entries["offset"]
        addresses = places[entries["symbol"]] + entries["addend"].astype(np.uint64)
        for offset, address in zip(offsets.tolist(), addresses.tolist(), strict=True):
            struct.pack_into("<Q", memory, offset, address)
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(base), ctypes.c_size_t(len(code)), mmap.PROT_READ | mmap.PROT_EXEC):
        return None  # this system does not execute what a process has written
    _loaded.append(memory)
    names = code[int(sections["offset"][table["link"]]) :]
    wanted = [
        place
        for place, name in zip(places, symbols["name"], strict=True)
        if names.startswith(f"{function}\0".encode(), int(name))
    ]
    return int(wanted[0])
