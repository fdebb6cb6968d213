"""Secrets in a text: patterns for the syntaxes that people write them in.

The end of an unquoted password is unknown, so it ends at a blank.  Patterns hide too much rather than too little: a secret that
was sent cannot be taken back.  The group `v` of each pattern is the secret; `b` and `c` are the backslashes and the quote before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT
_OF_FLINK = (  # GlobalConfiguration.SENSITIVE_KEYS
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token", "basic-auth", "jaas.config",
    "http-headers",
)  # fmt: skip
_OF_OTHERS = (
    "passwd", "passphrase", "passcode", "pwd", "credential", "access-key", "account-key", "private-key", "sas-key", "shared-key",
    "encryption-key", "master-key", "signing-key", "license-key", "signature", "authorization", "cookie", "connection-string", "java-opts",
)  # fmt: skip
_SECRET_WORDS = "|".join(re.sub(r"[-.]", "[-_. ]?", word) for word in sorted((*_OF_FLINK, *_OF_OTHERS), key=len, reverse=True))
_KEY = rf"(?:{_SECRET_WORDS}|(?<=\.)auth(?![\w.-])|(?<!by)(?<!com)pass(?![a-z]|-through))"
_SECRET_WORD = re.compile(_KEY, re.IGNORECASE)

_NOT_HIDDEN = r"(?!\*{6})"  # else it was hidden before
_NAME = rf"{_KEY}[\w.-]{{0,60}}[\])}}]{{0,2}}"
_ASSIGNED = r"\s{0,3}(?:={1,3}>?|:=?|%3[AD]|\\u003[ad]|&#61;)\s{0,3}"
_INSIDE = r"""(?:[^\\"']|(?!(?P=b)(?P=c))(?:\\+(?:''|["'])?|["']))"""  # of quotes that a JSON document in a JSON document escapes once more
_QUOTED = rf"""(?P<b>\\*)(?P<c>["']){_INSIDE}*+(?:(?P=b)(?P=c)|\Z)"""
_ENTITIES = "|".join(rf"{quote}.*?(?:{quote}|\Z)" for quote in ("&quot;", "&apos;", "%22", "%27", r"\\u0022", r"\\u0027", "`"))
_IN_BRACKETS = r"\[[^\]]*(?:\]|\Z)|\{[^}]*(?:\}|\Z)|\([^)]*(?:\)|\Z)|<[^>]*(?:>|\Z)"
_GLUED = r"""(?:(?![,;:)\]}>&])(?:\\.|"(?:[^"\\]|\\.)*+(?:"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|[^\s"'])*+)?"""  # shells and SQL join 'a''b'
_BARE = r"""[^\s"']\S*(?<![,;)\]}])|[^\s"',;)\]}]"""
_VALUE = rf"(?P<v>{_NOT_HIDDEN}(?:(?:{_QUOTED}|{_ENTITIES}|{_IN_BRACKETS}){_GLUED}|{_BARE}))"

_LINE = rf"^\s{{0,20}}(?:export\s|set\s|-\s)?\s?[\w.-]{{0,80}}?{_NAME}[ \t]{{0,3}}(?:=>?|:)[ \t]{{0,3}}"
_ENTRY = rf"""\b(?:key|name|option|property)\\*["']?\s{{0,3}}[:=]\s{{0,3}}\\*["'][^"']{{0,100}}?{_KEY}[^"']{{0,100}}["']"""

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE)
    for pattern in (
        rf"\b(?:AKIA|ASIA)[0-9A-Z]{{16}}\W{{1,5}}(?P<v>{_NOT_HIDDEN}[A-Za-z0-9/+=]{{40}})",  # the secret key of AWS behind the other one
        rf"[?&][\w.-]{{0,60}}{_NAME}=(?P<v>{_NOT_HIDDEN}[^\s&\"<>]+)",  # an address: & ends the value
        rf"""(?<!\\)(?P<b>\\*)(?P<c>["'])-{{0,2}}[\w.-]{{0,80}}?{_NAME}{_ASSIGNED}(?P<v>{_NOT_HIDDEN}{_INSIDE}++)""",  # "password=a b"
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
        rf"[?&](?:sig|x-amz-signature|x-amz-credential|x-goog-signature)=(?P<v>{_NOT_HIDDEN}[^\s&'\"]+)",  # signed addresses
        rf"\bhooks\.slack\.com/services/(?P<v>{_NOT_HIDDEN}[^\s\"'<>]+)",
        r"\b(?P<v>(?:AKIA|ASIA)[0-9A-Z]{16})\b",  # keys of AWS
        r"\b(?P<v>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})",  # JSON web tokens
        r"\b(?P<v>gh[pousr]_[0-9A-Za-z]{20,}|xox[abp]-[\w-]{10,}|AIza[\w-]{30,}|sk-[\w-]{20,})",  # of well-known services
    )
)
_SIGNS = (
    "bearer", "basic", "private key", "//", "\\/\\/", "%2f%2f", "sig=", "signature=", "credential=", "akia", "asia", "eyj", "gh", "xox",
    "aiza", "sk-", "-p", "-u", "identified", "jdbc:oracle", "hooks.slack",
)  # fmt: skip
"""Each pattern needs one of these signs or a secret word; most texts have neither."""
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_FLAG = re.compile(rf"--?[\w.-]{{0,80}}?{_NAME}", re.IGNORECASE)
_ADDRESS = re.compile(r"""(?:(https?):)?(//|\\/\\/|%2F%2F)([^\s"<>]+)""", re.IGNORECASE)


def is_secret_word(text: str) -> bool:
    """Whether the text names a secret."""
    return _SECRET_WORD.search(text) is not None


def may_hold(text: str) -> bool:
    """False: `without_secrets` changes nothing."""
    plain = text.lower()
    return _SIGN.search(plain) is not None or is_secret_word(plain)


def is_flag(text: str) -> bool:
    """``--db-password``, whose value is the next argument."""
    return text == "-p" or _FLAG.fullmatch(text) is not None


def without_secrets(text: str) -> tuple[str, int]:
    """The text without secrets, and their number."""
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
    """`user:password` of addresses, with any characters in the password; of http also a token in place of the user."""
    for match in _ADDRESS.finditer(text):
        at = max(match[3].rfind("@"), match[3].lower().rfind("%40") if match[2].startswith("%") else -1)
        user = match[3][: max(at, 0)]
        with_password = ":" in user or "%3a" in user.lower()
        if user not in ("", HIDDEN) and (with_password or (match[1] and "/" not in user)):
            yield match.start(3), match.start(3) + at
