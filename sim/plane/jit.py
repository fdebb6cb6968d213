"""The compiler's only door: the kernel's text, compiled.

Every kernel function is compiled as it stands, with its calls bound to the other compiled functions; only the outermost one
is callable from Python and cached on disk.  The cache is keyed by the whole text, because numba looks at one file only.

Counting references to arrays in every function costs a factor of 3 to 7 here, and none is ever created or dropped inside, so
it is switched off (`_nrt`, a private option: a numba that refuses it compiles the same text without, slower).
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import sim.plane.kernel as kernel
import sim.plane.rows as rows

__all__ = ["compiled_door"]

Door = Callable[..., int]

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
FAST: dict[str, Any] = {"_nrt": False}
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def compiled_door() -> Door | None:
    """The kernel's door, to be called with arrays of records; None (and one warning) without a compiler."""
    try:
        import numba
    except ImportError as error:
        warnings.warn(f"the plane runs interpreted, numba cannot be imported: {error}", RuntimeWarning, stacklevel=2)
        return None
    if numba.config.DISABLE_JIT:
        warnings.warn("the plane runs interpreted, numba is disabled by NUMBA_DISABLE_JIT", RuntimeWarning, stacklevel=2)
        return None
    texts = [importlib.import_module(f"{kernel.__name__}.{info.name}") for info in pkgutil.iter_modules(kernel.__path__)]
    return bind(numba.njit, texts)


def bind(njit: Any, texts: list[ModuleType]) -> Door:
    """Compile every function of the modules in a namespace where the others are compiled too."""
    outer = OPTIONS | accepted(njit, FAST)
    inner = outer | accepted(njit, INNER)
    functions = {
        id(value): value for text in texts for value in vars(text).values() if isinstance(value, FunctionType) and value.__module__ == text.__name__
    }
    spaces = {text.__name__: dict(vars(text)) for text in texts}
    compiled: dict[int, Any] = {}
    for key, function in functions.items():
        twin = FunctionType(function.__code__, spaces[function.__module__], function.__name__)
        if function.__name__ == "door":
            twin.__qualname__ = f"door_{fingerprint(texts)}"
            compiled[key] = door = cached(njit, outer, twin)
        else:
            compiled[key] = njit(**inner)(twin)
    for space in spaces.values():
        space.update({name: compiled[id(value)] for name, value in space.items() if id(value) in compiled})
    return door  # type: ignore[no-any-return]


def accepted(njit: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options, or none of them where this numba does not know them; it says so at the first call, not before."""
    try:
        njit(**options)(lambda x: x).compile("int64(int64)")
    except Exception:  # noqa: BLE001 - whatever a future numba raises, the answer is to do without
        return {}
    return options


def cached(njit: Any, options: dict[str, Any], function: FunctionType) -> Any:
    """With a cache on disk if some directory can be written."""
    try:
        return njit(cache=True, **options)(function)
    except (RuntimeError, OSError):
        return njit(**options)(function)


def fingerprint(texts: list[ModuleType]) -> str:
    """Of the whole text and the layout of the rows."""
    digest = hashlib.blake2b(digest_size=6)
    for text in (*texts, rows):
        digest.update(Path(os.fspath(str(text.__file__))).read_bytes())
    return digest.hexdigest()
