"""Addresses of servers, whose text never has credentials: messages, kept commands and pages may be sent to others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_AUTHORITY = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server.  `str` and `repr` have neither its credentials nor its query; `url` is for requests only."""

    url: str = field(repr=False)

    @staticmethod
    def is_address(text: object) -> bool:
        """Whether the text is an address and not a path."""
        return isinstance(text, Address) or "://" in str(text)

    def __str__(self) -> str:
        return without_credentials(self.url).partition("?")[0]

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def without_credentials(text: str) -> str:
    """``http://user:secret@host/x`` -> ``http://host/x``; other texts stay as they are."""
    return _AUTHORITY.sub(r"\1", text)
