"""Find and mask secrets in texts and in answers of Flink's REST API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from sim.jobs.source.rest_answers import RestSnapshot

# ---- Patterns of secrets in different syntaxes.
#
# An unquoted password is assumed to end at a blank.  Patterns rather mask too much than too little, because a secret that
# was sent cannot be recalled.  The group `v` of each pattern is the secret; `b` and `c` are the backslashes and the quote
# before it.

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT
_OF_FLINK = (  # GlobalConfiguration.SENSITIVE_KEYS
    "password",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
)
_OF_OTHERS = (
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "credential",
    "access-key",
    "account-key",
    "private-key",
    "sas-key",
    "shared-key",
    "encryption-key",
    "master-key",
    "signing-key",
    "license-key",
    "signature",
    "authorization",
    "cookie",
    "connection-string",
    "java-opts",
)
_SECRET_WORDS = "|".join(
    re.sub(r"[-.]", "[-_. ]?", word) for word in sorted((*_OF_FLINK, *_OF_OTHERS), key=len, reverse=True)
)
_KEY = rf"(?:{_SECRET_WORDS}|(?<=\.)auth(?![\w.-])|(?<!by)(?<!com)pass(?![a-z]|-through))"
_SECRET_WORD = re.compile(_KEY, re.IGNORECASE)

_NOT_HIDDEN = r"(?!\*{6})"  # else it was hidden before
_NAME = rf"{_KEY}[\w.-]{{0,60}}[\])}}]{{0,2}}"
_ASSIGNED = r"\s{0,3}(?:={1,3}>?|:=?|%3[AD]|\\u003[ad]|&#61;)\s{0,3}"
# of quotes that a JSON document in a JSON document escapes once more
_INSIDE = r"""(?:[^\\"']|(?!(?P=b)(?P=c))(?:\\+(?:''|["'])?|["']))"""
_QUOTED = rf"""(?P<b>\\*)(?P<c>["']){_INSIDE}*+(?:(?P=b)(?P=c)|\Z)"""
_ENTITIES = "|".join(
    rf"{quote}.*?(?:{quote}|\Z)" for quote in ("&quot;", "&apos;", "%22", "%27", r"\\u0022", r"\\u0027", "`")
)
_IN_BRACKETS = r"\[[^\]]*(?:\]|\Z)|\{[^}]*(?:\}|\Z)|\([^)]*(?:\)|\Z)|<[^>]*(?:>|\Z)"
# shells and SQL join 'a''b'
_GLUED = r"""(?:(?![,;:)\]}>&])(?:\\.|"(?:[^"\\]|\\.)*+(?:"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|[^\s"'])*+)?"""
_BARE = r"""[^\s"']\S*(?<![,;)\]}])|[^\s"',;)\]}]"""
_VALUE = rf"(?P<v>{_NOT_HIDDEN}(?:(?:{_QUOTED}|{_ENTITIES}|{_IN_BRACKETS}){_GLUED}|{_BARE}))"

_LINE = rf"^\s{{0,20}}(?:export\s|set\s|-\s)?\s?[\w.-]{{0,80}}?{_NAME}[ \t]{{0,3}}(?:=>?|:)[ \t]{{0,3}}"
_ENTRY = (
    rf"""\b(?:key|name|option|property)\\*["']?\s{{0,3}}[:=]\s{{0,3}}\\*["'][^"']{{0,100}}?{_KEY}[^"']{{0,100}}["']"""
)

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE)
    for pattern in (
        # the secret key of AWS behind the other one
        rf"\b(?:AKIA|ASIA)[0-9A-Z]{{16}}\W{{1,5}}(?P<v>{_NOT_HIDDEN}[A-Za-z0-9/+=]{{40}})",
        rf"[?&][\w.-]{{0,60}}{_NAME}=(?P<v>{_NOT_HIDDEN}[^\s&\"<>]+)",  # an address: & ends the value
        # "password=a b"
        rf"""(?<!\\)(?P<b>\\*)(?P<c>["'])-{{0,2}}[\w.-]{{0,80}}?{_NAME}{_ASSIGNED}(?P<v>{_NOT_HIDDEN}{_INSIDE}++)""",
        rf"(?:authorization|cookie|http[-_.]?headers|auth[-_.]?params)\s{{0,3}}[:=]\s{{0,3}}(?P<v>{_NOT_HIDDEN}[^\s\"'][^\r\n]*)",
        rf"{_LINE}(?P<v>{_NOT_HIDDEN}[^\s\"'](?:(?! -> )[^\r\n])*)$",  # arrows join the operators of a chain
        rf"<[\w.:-]{{0,80}}?{_NAME}[^<>]{{0,200}}>\s*(?P<v>{_NOT_HIDDEN}(?:<!\[CDATA\[.*?(?:\]\]>|\Z)|[^\s<][^<]*))",
        rf"<name>[^<]{{0,100}}?{_KEY}[^<]{{0,100}}</name>\s*<value>\s*(?P<v>{_NOT_HIDDEN}(?:<!\[CDATA\[.*?(?:\]\]>|\Z)|[^\s<][^<]*))",
        rf"""{_ENTRY}[\s,]{{1,5}}\\*["']?value\\*["']?\s{{0,3}}[:=]\s{{0,3}}{_VALUE}""",
        rf"""{_NAME}(?:['"\\]{{0,8}}|&quot;|%22){_ASSIGNED}{_VALUE}""",  # password = 'x'
        rf"""{_NAME}['"\\]{{0,8}}\s{{1,3}}(?=\\*['"]){_VALUE}""",  # PASSWORD 'x'
        rf"(?<![\w-])--?[\w.-]{{0,80}}?{_NAME}\s{{1,3}}(?!--[a-z]){_VALUE}",  # --db-password x
        rf"(?<![\w-])-p\s{{1,3}}(?!-|\d{{1,5}}(?:\s|\Z)){_VALUE}",  # for Flink itself it is the parallelism
        rf"\b(?:mysql|mariadb)[^\r\n]{{0,200}}?\s-p(?P<v>{_NOT_HIDDEN}\S+)",
        rf"(?<![\w-])(?:-u|--user|--proxy-user)[\s=]{{1,3}}(?P<v>{_NOT_HIDDEN}[\"']?[^\s:\"']{{1,100}}:\S+)",
        rf"\blogin\s{{1,3}}\S{{1,100}}\s{{1,3}}password\s{{1,3}}(?P<v>{_NOT_HIDDEN}\S+)",  # .netrc
        rf"\bidentified\s{{1,3}}(?:with\s{{1,3}}\S{{1,100}}\s{{1,3}})?by\s{{1,3}}{_VALUE}",
        r"\bjdbc:oracle:\w{1,10}:(?P<v>[^\s@/]{1,100}/\S+)@",
        rf"\bbearer\s{{1,3}}(?P<v>{_NOT_HIDDEN}[^\s,;\"'<>)\]}}]+)",
        r"\bbasic\s{1,3}(?P<v>[\w.~+/=-]{8,})",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----(?P<v>.*?)(?:-----END|\Z)",
        # signed addresses
        rf"[?&](?:sig|x-amz-signature|x-amz-credential|x-goog-signature)=(?P<v>{_NOT_HIDDEN}[^\s&'\"]+)",
        rf"\bhooks\.slack\.com/services/(?P<v>{_NOT_HIDDEN}[^\s\"'<>]+)",
        r"\b(?P<v>(?:AKIA|ASIA)[0-9A-Z]{16})\b",  # keys of AWS
        r"\b(?P<v>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})",  # JSON web tokens
        # of well-known services
        r"\b(?P<v>gh[pousr]_[0-9A-Za-z]{20,}|xox[abp]-[\w-]{10,}|AIza[\w-]{30,}|sk-[\w-]{20,})",
    )
)
_SIGNS = (
    "bearer",
    "basic",
    "private key",
    "//",
    "\\/\\/",
    "%2f%2f",
    "sig=",
    "signature=",
    "credential=",
    "akia",
    "asia",
    "eyj",
    "gh",
    "xox",
    "aiza",
    "sk-",
    "-p",
    "-u",
    "identified",
    "jdbc:oracle",
    "hooks.slack",
)
"""Quick check: a text without these characters and without a secret word matches no pattern."""
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_FLAG = re.compile(rf"--?[\w.-]{{0,80}}?{_NAME}", re.IGNORECASE)
_ADDRESS = re.compile(r"""(?:(https?):)?(//|\\/\\/|%2F%2F)([^\s"<>]+)""", re.IGNORECASE)


def is_secret_word(text: str) -> bool:
    """Return whether the text is a name of a secret."""
    return _SECRET_WORD.search(text) is not None


def may_hold(text: str) -> bool:
    """Return False if `without_secrets` would change nothing."""
    plain = text.lower()
    return _SIGN.search(plain) is not None or is_secret_word(plain)


def is_flag(text: str) -> bool:
    """Return whether an argument is a flag such as ``--db-password``, whose value is the next argument."""
    return text == "-p" or _FLAG.fullmatch(text) is not None


def without_secrets(text: str) -> tuple[str, int]:
    """Return the text with secrets masked, and their number."""
    count = 0
    for pattern in _PATTERNS:
        found = (match for match in pattern.finditer(text) if match["v"].strip("'\"\\ ") not in ("", HIDDEN))
        text, hidden = _hidden(text, [match.span("v") for match in found])
        count += hidden
    text, hidden = _hidden(text, list(_users(text)))
    return text, count + hidden


def _hidden(text: str, spans: list[tuple[int, int]]) -> tuple[str, int]:
    for start, end in reversed(spans):
        text = text[:start] + HIDDEN + text[end:]
    return text, len(spans)


def _users(text: str) -> Iterator[tuple[int, int]]:
    """Mask `user:password` of addresses; of http addresses also a token instead of the user."""
    for match in _ADDRESS.finditer(text):
        at = max(match[3].rfind("@"), match[3].lower().rfind("%40") if match[2].startswith("%") else -1)
        user = match[3][: max(at, 0)]
        with_password = ":" in user or "%3a" in user.lower()
        if user not in ("", HIDDEN) and (with_password or (match[1] and "/" not in user)):
            yield match.start(3), match.start(3) + at


# ---- Mask passwords, keys and tokens in answers by ``******``, because answers are shared.
#
# Flink hides values of sensitive keys in its own configuration (GlobalConfiguration.SENSITIVE_KEYS).  It hides neither
# parameters of a job, nor secrets inside other values: JVM options, addresses, SQL, stack traces.

_MAX_TEXT_CHARS = 100_000  # characters of one text; what follows is left out
_MAX_CACHED_CHARS = 80  # characters of a text that is likely to come again, at the next look or of the next subtask
_LAST_WORD = re.compile(r"(?<!\S)\S*\Z")
_NAMES = ("key", "name", "option", "property")
"""Keys of the name in objects with a name and a `value`."""
_MAX_SUBTASKS = 5  # digits


@lru_cache(1 << 14)
def is_secret(key: str) -> bool:
    """Return whether the value of a key must be masked."""
    return is_secret_word(key)


def masked(snapshot: RestSnapshot, *, with_samples: bool = True) -> tuple[RestSnapshot, int]:
    """Return (the snapshot with secrets masked, number of masked values).  Of samples only names can contain secrets."""
    mask = _Mask()
    answers = {path: mask.value(answer) for path, answer in snapshot.answers.items()}
    samples = snapshot.samples
    if with_samples:
        samples = {
            time_ms: {path: mask.value(answer) for path, answer in sample.items()}
            for time_ms, sample in samples.items()
        }
    missing = {path: mask.text(why) for path, why in snapshot.missing.items()}
    return RestSnapshot(mask.text(snapshot.source), snapshot.job, answers, samples, missing), mask.count


_short_may_hold = lru_cache(1 << 14)(may_hold)


def masked_text(text: str) -> str:
    """Return the text with secrets masked."""
    return _masked_text(text)[0]


@lru_cache(1 << 14)
def _masked_text(text: str) -> tuple[str, int]:
    if len(text) > _MAX_TEXT_CHARS:
        # an address that is cut off does not show that it begins with a password
        text = _LAST_WORD.sub("...", text[:_MAX_TEXT_CHARS])
    return _masked_json(text) or without_secrets(text)


def _masked_json(text: str) -> tuple[str, int] | None:
    """Return the JSON document in a text with secrets masked, or None if it is not JSON, or nested too deeply."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    mask = _Mask()
    try:
        document = mask.value(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return (json.dumps(document, ensure_ascii=False) if mask.count else text), mask.count


class _Mask:
    """Masks secrets in answers, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        return self._mapping(value) if isinstance(value, dict) else value

    def text(self, text: str) -> str:
        may_be = _short_may_hold if len(text) <= _MAX_CACHED_CHARS else may_hold
        if len(text) < 4 or text.isdecimal() or not may_be(text):
            return text
        masked, count = _masked_text(text)
        self.count += count
        return masked

    def _list(self, values: list[Any]) -> list[Any]:
        """Mask a list: arguments of a program, where a value may follow its flag, or a pair of name and value."""
        pair = (
            len(values) == 2 and isinstance(values[0], str) and not values[0].startswith("-") and is_secret(values[0])
        )
        return [
            self._hidden(value) if before is not None and _is_argument(before, value, pair=pair) else self.value(value)
            for before, value in zip([None, *values], values, strict=False)
        ]

    def _mapping(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        named = "value" in mapping and any(
            isinstance(name := mapping.get(key), str) and is_secret(name) for key in _NAMES
        )
        return {
            self.text(name): self._hidden(item) if is_secret(name) or (named and name == "value") else self.value(item)
            for name, item in mapping.items()
        }

    def _hidden(self, value: Any) -> Any:
        """Return the mask instead of a value, except for booleans."""
        if value is None or isinstance(value, bool) or value in ("", HIDDEN, "true", "false"):
            return value
        self.count += 1
        return HIDDEN


def _is_argument(before: Any, value: Any, *, pair: bool) -> bool:
    """Return whether a value is the secret of the flag before it.  Flink's own -p is the parallelism."""
    if not isinstance(before, str) or not isinstance(value, str):
        return False
    if before in ("-u", "--user"):
        return ":" in value
    if before == "-p" and value.isdecimal() and len(value) <= _MAX_SUBTASKS:
        return False
    return (is_flag(before) and not value.startswith("--")) or pair
