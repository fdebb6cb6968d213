"""What nobody should send to a colleague: passwords, keys and tokens in the answers of a cluster, replaced by ``******``.

Flink hides values of keys that look secret (GlobalConfiguration.SENSITIVE_KEYS) in what its REST API says of its own configuration; it
hides neither the parameters of a job, nor what stands inside of other values: options of a JVM, addresses, SQL, stack traces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sim.recordings.source.rest.snapshot import Snapshot

__all__ = ["HIDDEN", "is_secret", "masked", "masked_text"]

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT
_OF_FLINK = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token", "basic-auth", "jaas.config",
    "http-headers",
)  # fmt: skip
_OURS = (
    "passwd", "passphrase", "pwd", "credential", "api.key", "api_key", "access-key", "access.key", "access_key", "accesskey", "account-key",
    "account.key", "accountkey", "private-key", "private.key", "private_key", "privatekey", "sas-key", "shared-key", "sharedkey",
    "signature", "authorization", "cookie", "connection-string", "connectionstring", "java.opts",
)  # fmt: skip
_WORDS = (*_OF_FLINK, *_OURS)
_KEY = "|".join(re.escape(word).replace(r"\-", "[-_.]?") for word in sorted({*_WORDS} - {"java.opts"}, key=len, reverse=True))
_VALUE = r"""(?:\\"(?:(?!\\").)*(?:\\"|\Z)|"(?:[^"\\]|\\.)*+(?:"|\Z)|'(?:[^']|'')*+(?:'|\Z)|[^\s,;&"'<>(){}\[\]\\]+)"""
_ALWAYS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\b(?:bearer|basic)\s{1,3}(?P<v>[\w.~+/=-]{8,})",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?P<v>.*?)(?:-----END|\Z)",
        r"\b[a-z][a-z0-9+.-]{0,30}://(?P<v>[^\s/@:'\"<>]*:[^\s/'\"<>]*)@",  # user:password@host; a password may have an @
        r"\bhttps?://(?P<v>[^\s/'\"<>]+)@",  # a token in place of a user
        r"[?&](?:sig|x-amz-signature|x-amz-credential|x-goog-signature)=(?P<v>[^\s&'\"]+)",  # signed addresses
        r"\b(?P<v>(?:AKIA|ASIA)[0-9A-Z]{16})\b",  # keys of AWS
        r"\b(?P<v>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})",  # JSON web tokens
        r"\b(?P<v>gh[pousr]_[0-9A-Za-z]{20,}|xox[abp]-[\w-]{10,}|AIza[\w-]{30,}|sk-[\w-]{20,})",  # of well-known services
    )
)
_SIGNS = ("bearer", "basic", "private key", "://", "sig=", "signature=", "credential=", "akia", "asia", "eyj", "gh", "xox", "aiza", "sk-")
"""One of them is in whatever matches; most texts have none."""
_NAMED = (
    re.compile(
        rf"(?:{_KEY})[\w.-]{{0,60}}['\"\\]{{0,2}}(?:\s{{0,3}}(?:=>?|:)\s{{0,3}}|\s{{1,3}}(?=['\"]))(?P<v>{_VALUE})",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(rf"(?<![\w-])--?(?:[a-z]\w{{0,30}}[.-]){{0,6}}(?:{_KEY})[\w.-]{{0,60}}\s{{1,3}}(?P<v>{_VALUE})", re.IGNORECASE | re.DOTALL),
)
"""``password = 'x'``, ``--db-password x``"""
_LONGEST = 100_000  # characters of one text; what follows is left out


@lru_cache(1 << 14)
def is_secret(key: str) -> bool:
    """Whether the value of such a key is nobody's business."""
    plain = key.lower()
    return any(word in plain for word in _WORDS)


def masked(snapshot: Snapshot, *, with_samples: bool = True) -> tuple[Snapshot, int]:
    """The same without secrets; how many values were replaced.  Samples are numbers, whose names alone could hold one."""
    mask = _Mask()
    answers = {path: mask.value(answer) for path, answer in snapshot.answers.items()}
    samples = snapshot.samples
    if with_samples:
        samples = {time_ms: {path: mask.value(answer) for path, answer in sample.items()} for time_ms, sample in samples.items()}
    missing = {path: mask.text(why) for path, why in snapshot.missing.items()}
    return Snapshot(mask.text(snapshot.source), snapshot.job, answers, samples, missing), mask.count


def masked_text(text: str) -> str:
    """The secrets inside of it replaced."""
    return _masked_text(text)[0]


@lru_cache(1 << 14)
def _masked_text(text: str) -> tuple[str, int]:
    count = 0
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    for pattern in (*_ALWAYS, *_NAMED) if is_secret(text) else _ALWAYS:
        found = [match.span("v") for match in pattern.finditer(text) if match["v"].strip("'\"\\") not in ("", HIDDEN)]
        for start, end in reversed(found):
            text = text[:start] + HIDDEN + text[end:]
        count += len(found)
    return text, count


class _Mask:
    """Of all answers; counts what it hides."""

    def __init__(self) -> None:
        self.count = 0

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return self._mapping(value) if isinstance(value, dict) else value

    def text(self, text: str) -> str:
        if len(text) < 4 or text.isdecimal():
            return text
        plain = text.lower()
        if not any(sign in plain for sign in _SIGNS) and not is_secret(plain):
            return text
        masked, count = _masked_text(text)
        self.count += count
        return masked

    def _mapping(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        option = mapping.get("key")  # {"key": ..., "value": ...}: one line of a configuration
        if isinstance(option, str) and is_secret(option) and "value" in mapping:
            return {name: self._hidden(item) if name == "value" else self.value(item) for name, item in mapping.items()}
        return {self.text(name): self._hidden(item) if is_secret(name) else self.value(item) for name, item in mapping.items()}

    def _hidden(self, value: Any) -> Any:
        """Whatever it is; a switch tells nothing."""
        if value is None or isinstance(value, bool) or value in ("", HIDDEN, "true", "false"):
            return value
        self.count += 1
        return HIDDEN
