"""Mask secrets in free text of a job, such as names of operators, failure messages and lines of a log.

Answers of Flink's REST API are reduced to the fields that are read (`sim.jobs.source.rest_answers`); this is for the text
in these fields.  A secret is found if something names it, or if it is part of an address.  Unquoted ones end at a blank.
Patterns rather mask too much than too little, because a secret that was sent cannot be recalled.
"""

from __future__ import annotations

import re

HIDDEN = "******"  # GlobalConfiguration.HIDDEN_CONTENT
_MAX_TEXT_CHARS = 100_000  # characters of one text; what follows is left out
_LAST_WORD = re.compile(r"\S*\Z")

# GlobalConfiguration.SENSITIVE_KEYS, and more
_WORD = r"""
    (?:passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|signature|authorization|cookie|connection[-_.]?string
    |(?:api|access|account|service|private|shared|sas|encryption|signing)[-_. ]?key|auth[-_.]?params|basic[-_.]?auth
    |jaas[-_.]?config|http[-_.]?headers|java[-_.]?opts|(?<=\.)auth(?![\w.-])|(?<!by)(?<!com)pass(?![a-z]|-through))
    [\w.-]{0,60}"""
_QUOTED = r"""(?P<quote>\\*["'])(?:''|(?!(?P=quote))\\?.)*(?:(?P=quote)|\Z)"""
_BARE = r"""[^\s"']*[^\s"',;)\]}]"""
_SECRET = re.compile(
    rf"""(?P<name>
      {_WORD}["'\\\])}}]{{0,8}}\s{{0,3}}(?:={{1,3}}+>?+|:=?+|%3[AD]|\\u003[ad])\s{{0,3}}+  # password = x
    | {_WORD}["'\\]{{0,8}}\s{{1,3}}(?=\\*["'])                                  # PASSWORD 'x'
    | (?<![\w-])--?[\w.-]{{0,80}}?{_WORD}\s{{1,3}}+                             # --db-password x
    | \b(?:bearer|basic)\s{{1,3}}+
    )(?!\*{{6}})(?:(?:bearer|basic)\s{{1,3}})?(?:{_QUOTED}|{_BARE})
    | (?<=//)[^\s"<>/]{{0,200}}:[^\s"<>]{{0,200}}(?=@) | (?<=https://)[^\s"<>/]{{1,200}}(?=@)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def masked_text(text: str) -> str:
    """Return the text with secrets masked."""
    if len(text) > _MAX_TEXT_CHARS:
        # an address that is cut off does not show that it begins with a password
        text = _LAST_WORD.sub("...", text[:_MAX_TEXT_CHARS], count=1)
    return _SECRET.sub(lambda found: f"{found['name'] or ''}{HIDDEN}", text)
