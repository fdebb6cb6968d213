"""The kernel's machine code: compiled once with LLVM from the kernel's source, cached on disk, loaded.

It is one function over integers and memory that does not use Python, so any process with the same source and processor
can execute it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import pkgutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from sim.model.files import replace_file
from sim.plane import interface, rows, spec, text
from sim.plane.rows import PlaneState
from sim.plane.text.loop import dispatch_operation

ENTRY = "kernel_door"
"""The only exported symbol."""
CACHE_DIR = "CKPTSIM_CACHE_DIR"
"""Environment variable that names the only cache directory."""
_CHECKSUM = 16  # bytes that a file begins with
_loaded: list[Any] = []
"""Keeps execution engines alive."""
_codes: dict[str, bytes] = {}
"""Machine code by name: what this process runs, and what another process sent."""
_compiled_here: list[str] = []
"""The names of what this process compiled itself."""


@cache
def load_compiled_entry_point() -> Callable[..., int] | None:
    """Return the entry point, which takes the address of a table of addresses.  Without a compiler, return None and warn once."""
    entry_point, why = _load_or_compile()
    if why:
        warnings.warn(f"the plane runs interpreted, {why}", RuntimeWarning, stacklevel=2)
    return entry_point


def export_code() -> tuple[str, bytes] | None:
    """Return name and bytes of the machine code for `import_code` in another process, or None if there is none."""
    entry_point, _ = _load_or_compile()
    return next(iter(_codes.items()), None) if entry_point else None


def import_code(name: str, code: bytes) -> None:
    """Accept machine code of another process.  It is used if this source, processor and compiler give it the same name."""
    _codes.setdefault(name, code)


def compiled_here() -> bool:
    """Return whether this process compiled the kernel itself."""
    return bool(_compiled_here)


def addresses(state: PlaneState) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return where each array of the state begins, for the entry point.  The arrays must stay alive during the call."""
    return np.array([cast(Any, array).ctypes.data for array in state], np.int64)


def texts() -> list[ModuleType]:
    """Return the kernel's source modules, sorted by path."""
    return [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(text.__path__, f"{text.__name__}.")
        if not info.ispkg
    ]


@cache
def _load_or_compile() -> tuple[Callable[..., int] | None, str]:
    """Return the entry point, or the reason why there is none."""
    try:
        from llvmlite import binding

        name = f"kernel-{_key(binding)}.o"
    except (ImportError, PackageNotFoundError) as error:
        return None, f"llvmlite cannot be imported: {error}"
    sent = _codes.pop(name, None)
    _codes.clear()  # code for another processor is discarded
    code = sent or next(filter(None, (_read(place / name) for place in places())), None)
    if code is None:
        code = _compiled(binding, texts())
        _compiled_here.append(name)
        _keep(code, name)
    _codes[name] = code
    return _loaded_door(binding, code), ""


def places() -> Iterator[Path]:
    """Yield the folders in which machine code is looked for, and stored if they are writable.

    If CACHE_DIR is set, it is the only one.  Otherwise: next to the source, the user's cache, the system's temporary folder."""
    if chosen := os.environ.get(CACHE_DIR):
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


def _key(binding: Any) -> str:
    """Return a digest of source, compiler and processor: code can be used only if all of them are the same."""
    compiler = f"{version('llvmlite')} {binding.get_process_triple()}"
    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    return hashlib.blake2b(f"{_fingerprint()} {compiler} {processor}".encode(), digest_size=10).hexdigest()


def _fingerprint() -> str:
    """Return a digest of everything that is compiled, and of the compiler."""
    digest = hashlib.blake2b(digest_size=6)
    compiler = [__file__, str(Path(__file__).with_name("lowering.py"))]
    for path in (*(str(module.__file__) for module in (*texts(), interface, spec, rows)), *compiler):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return machine code if it exists, is complete, and no other user could have written it."""
    try:
        if not _is_private(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    code = content[_CHECKSUM:]
    return code if content[:_CHECKSUM] == _checksum(code) else None


def _keep(code: bytes, name: str) -> None:
    """Store the code in the first writable folder.  If there is none, every process compiles."""
    for place in places():
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True, mode=0o700 if place == _temporary() else 0o777)
            if not _is_private(place):
                continue
            replace_file(place / name, lambda path: path.write_bytes(_checksum(code) + code))
            return


def _is_private(place: Path) -> bool:
    """Return whether no other user can write to the folder, which only matters in the shared temporary directory."""
    if place != _temporary():
        return True
    found = place.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _checksum(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_CHECKSUM).digest()


def _machine(binding: Any) -> Any:
    """Return this processor as a target for code that is loaded into this process."""
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


def _compiled(binding: Any, files: Sequence[ModuleType]) -> bytes:
    """Compile all source modules as one LLVM module."""
    from sim.plane.lowering import lowered

    machine = _machine(binding)
    module = binding.parse_assembly(str(lowered(files, ENTRY)))
    module.triple, module.data_layout = binding.get_process_triple(), str(machine.target_data)
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)  # type: ignore[no-any-return]


def _loaded_door(binding: Any, code: bytes) -> Callable[..., int]:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine(binding))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + dispatch_operation.__code__.co_argcount))(
        engine.get_function_address(ENTRY)
    )
