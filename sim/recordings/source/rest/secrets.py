"""Passwords, keys and tokens in the answers of a cluster are replaced by ``******``: answers are sent to colleagues.

Flink itself hides values of keys that look secret (GlobalConfiguration.SENSITIVE_KEYS), but only in its own configuration.  It hides
no parameters of a job.  Nor does it hide secrets inside other values: options of a JVM, addresses, SQL, stack traces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sim.recordings.source.rest.secret_texts import HIDDEN, is_flag, is_secret_word, may_hold, without_secrets
from sim.recordings.source.rest.snapshot import RestSnapshot

__all__ = ["HIDDEN", "is_secret", "masked", "masked_text"]

_LONGEST = 100_000  # characters of one text; what follows is left out
_SHORT = 80  # characters of a text that is likely to come again, at the next look or of the next subtask
_LAST_WORD = re.compile(r"(?<!\S)\S*\Z")
_NAMES = ("key", "name", "option", "property")
"""Keys of the name in an object that has a `value`."""
_MOST_SUBTASKS = 5  # digits


@lru_cache(1 << 14)
def is_secret(key: str) -> bool:
    """Whether the value of such a key must be hidden."""
    return is_secret_word(key)


def masked(snapshot: RestSnapshot, *, with_samples: bool = True) -> tuple[RestSnapshot, int]:
    """(the snapshot without secrets, number of replaced values).  Samples are numbers; only their names could hold a secret."""
    mask = _Mask()
    answers = {path: mask.value(answer) for path, answer in snapshot.answers.items()}
    samples = snapshot.samples
    if with_samples:
        samples = {time_ms: {path: mask.value(answer) for path, answer in sample.items()} for time_ms, sample in samples.items()}
    missing = {path: mask.text(why) for path, why in snapshot.missing.items()}
    return RestSnapshot(mask.text(snapshot.source), snapshot.job, answers, samples, missing), mask.count


_short_may_hold = lru_cache(1 << 14)(may_hold)


def masked_text(text: str) -> str:
    """The text with its secrets replaced."""
    return _masked_text(text)[0]


@lru_cache(1 << 14)
def _masked_text(text: str) -> tuple[str, int]:
    if len(text) > _LONGEST:
        text = _LAST_WORD.sub("...", text[:_LONGEST])  # an address that is cut off does not show that it begins with a password
    return _masked_json(text) or without_secrets(text)


def _masked_json(text: str) -> tuple[str, int] | None:
    """The JSON document in a text, masked; None: the text is no document, or nested too deeply."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    mask = _Mask()
    try:
        document = mask.value(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return (json.dumps(document, ensure_ascii=False) if mask.count else text), mask.count


class _Mask:
    """A mask for secrets in answers, which counts what it hides."""

    def __init__(self) -> None:
        self.count = 0

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        return self._mapping(value) if isinstance(value, dict) else value

    def text(self, text: str) -> str:
        may_be = _short_may_hold if len(text) <= _SHORT else may_hold
        if len(text) < 4 or text.isdecimal() or not may_be(text):
            return text
        masked, count = _masked_text(text)
        self.count += count
        return masked

    def _list(self, values: list[Any]) -> list[Any]:
        """A list: arguments of a program, where a value may follow its name; or a pair of both."""
        pair = len(values) == 2 and isinstance(values[0], str) and not values[0].startswith("-") and is_secret(values[0])
        return [
            self._hidden(value) if before is not None and _is_argument(before, value, pair=pair) else self.value(value)
            for before, value in zip([None, *values], values, strict=False)
        ]

    def _mapping(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        named = "value" in mapping and any(isinstance(name := mapping.get(key), str) and is_secret(name) for key in _NAMES)
        return {
            self.text(name): self._hidden(item) if is_secret(name) or (named and name == "value") else self.value(item)
            for name, item in mapping.items()
        }

    def _hidden(self, value: Any) -> Any:
        """The mask in place of any value but a switch, which tells nothing."""
        if value is None or isinstance(value, bool) or value in ("", HIDDEN, "true", "false"):
            return value
        self.count += 1
        return HIDDEN


def _is_argument(before: Any, value: Any, *, pair: bool) -> bool:
    """Whether the value is the secret that the argument before it announces.  Flink's own -p is the parallelism."""
    if not isinstance(before, str) or not isinstance(value, str):
        return False
    if before in ("-u", "--user"):
        return ":" in value
    if before == "-p" and value.isdecimal() and len(value) <= _MOST_SUBTASKS:
        return False
    return (is_flag(before) and not value.startswith("--")) or pair
