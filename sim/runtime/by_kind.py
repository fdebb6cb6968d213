"""A method for each kind of command: `functools.singledispatchmethod` for exact types, without a new wrapper at every call."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, get_args, get_type_hints

__all__ = ["by_kind"]

_Method = Callable[[Any, Any], None]


class by_kind:  # noqa: N801 -- a decorator
    """Decorates what happens to a kind nobody registered for; `register` the others by their annotation, a union for several kinds."""

    def __init__(self, otherwise: _Method) -> None:
        self._otherwise = otherwise
        self._methods: dict[type, _Method] = {}

    def register(self, method: _Method) -> _Method:
        kind = next(hint for name, hint in get_type_hints(method).items() if name != "return")
        for one in get_args(kind) or (kind,):
            self._methods[one] = method
        return method

    def __get__(self, host: object, owner: type | None = None) -> Callable[[Any], None]:
        return MethodType(self, host)

    def __call__(self, host: Any, said: Any) -> None:
        self._methods.get(type(said), self._otherwise)(host, said)
