"""Commands find their methods by their kind."""

from __future__ import annotations

import pytest

from sim.runtime.by_kind import by_kind


class Echo:
    def __init__(self) -> None:
        self.said: list[str] = []

    @by_kind
    def hear(self, word: object) -> None:
        raise TypeError(f"nobody hears {word}")

    @hear.register
    def _number(self, word: int) -> None:
        self.said.append(f"number {word}")

    @hear.register
    def _text_or_bytes(self, word: str | bytes) -> None:
        self.said.append(f"text {word!r}")


def test_each_kind_has_its_method_and_each_host_its_own_state() -> None:
    one, other = Echo(), Echo()
    one.hear(1)
    one.hear("a")
    other.hear(b"b")

    assert ["number 1", "text 'a'"] == one.said
    assert ["text b'b'"] == other.said


def test_a_kind_nobody_registered_for_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"nobody hears 1\.5"):
        Echo().hear(1.5)
