"""One HTTP endpoint asked politely: time limits, a few retries with growing pauses, one clear message for whatever goes wrong.

Knows JSON, and that Flink answers in it; which questions to ask is the business of `sim.recordings.rest.fetching`.
Plain urllib: reading needs no more.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from sim.recordings.reader import RecordingError

__all__ = ["LARGEST_BYTES", "Client", "RestError"]

LARGEST_BYTES = 50_000_000  # the details of a job with 10 000 subtasks have 5 MB
SILENCE_S = 10.0  # without a byte; Flink's own patience (pekko.ask.timeout) has the same default
WHOLE_S = 60.0  # for one answer, however it trickles
ATTEMPTS = 4
FIRST_PAUSE_S = 0.5  # doubles; with jitter, so that many clients don't come back at once
AGAIN = frozenset({429, 500, 502, 503, 504})  # 503: Flink without a leader, 500: an RPC inside Flink timed out
_HINT = "is this Flink's REST address?"


class RestError(RecordingError):
    """The endpoint gives no usable answer; the message says which, and what to do."""

    def __init__(self, message: str, *, status: int = 0, again: bool = False) -> None:
        super().__init__(message)
        self.status = status  # of HTTP; 0: there was no answer
        self.again = again  # another attempt may help


class _SameHost(HTTPRedirectHandler):
    """Follows redirects as urllib does, but carries credentials to no other host."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str) -> Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            following.remove_header("Authorization")
        return following


class Client:
    """Reads JSON below one URL; credentials in it (``http://user:password@host``) become a header and are never shown."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = _parsed(url)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        place = f"{host}:{parts.port}" if parts.port else str(host)
        self.url = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
        self.headers = {"Accept": "application/json", "User-Agent": "ckptsim", **(headers or {})}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self.silence_s = silence_s
        self.pause = pause
        direct = [ProxyHandler({})] if _is_loopback(str(parts.hostname)) else []
        self.opener = build_opener(_SameHost, HTTPSHandler(context=ssl.create_default_context()), *direct)

    def get(self, path: str, *, attempts: int = ATTEMPTS) -> Any:
        """The JSON below the URL.  RestError: there is none, even after some retries."""
        for attempt in range(attempts - 1):
            try:
                return self._once(path)
            except RestError as error:
                if not error.again:
                    raise
            self.pause(FIRST_PAUSE_S * 2**attempt * random.uniform(0.75, 1.25))
        return self._once(path)

    def _once(self, path: str) -> Any:
        request = Request(self.url + path, headers=self.headers)  # noqa: S310 -- http and https only: see _parsed
        try:
            with self.opener.open(request, timeout=self.silence_s) as answer:
                content = self._content(path, answer)
        except HTTPError as error:
            with error:
                raise RestError(self._refused(path, error), status=error.code, again=error.code in AGAIN) from None
        except (OSError, HTTPException) as error:
            raise self._silent(path, error) from None
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._no_json(path, content, error) from None

    def _content(self, path: str, answer: HTTPResponse) -> bytes:
        content, deadline = bytearray(), time.monotonic() + WHOLE_S
        while part := answer.read1(1 << 20):
            content += part
            if len(content) > LARGEST_BYTES:
                raise RestError(f"{self.url}{path}: answers with more than {LARGEST_BYTES} bytes")
            if time.monotonic() > deadline:
                raise RestError(f"{self.url}{path}: the answer does not come to an end within {WHOLE_S:g} s")
        return bytes(content)

    def _no_json(self, path: str, content: bytes, error: Exception) -> RestError:
        place, start = f"{self.url}{path}", content.lstrip()[:1]
        if start == b"<":
            return RestError(f"{place}: answers with a web page, not with JSON: {_HINT}")
        if start and start in b"{[":
            return RestError(f"{place}: its JSON is cut off or damaged ({_short(error)})", again=True)
        return RestError(f"{place}: answers with {'something that is no JSON' if start else 'nothing'}: {_HINT}")

    def _refused(self, path: str, error: HTTPError) -> str:
        place = f"{self.url}{path}: HTTP {error.code}"
        if error.code in (401, 407):
            return f"{place}: asks who we are: write http://USER:PASSWORD@HOST:PORT, or --header 'Authorization: ...'"
        if error.code == 403:
            return f"{place}: does not let us in"
        reason = _flink_reason(error)
        return f"{place}: {reason}" if reason else f"{place} {error.reason}: {_HINT}"

    def _silent(self, path: str, error: Exception) -> RestError:
        cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
        place = f"{self.url}{path}"
        if isinstance(cause, ssl.SSLCertVerificationError):
            who = "SSL_CERT_FILE may name who vouches for it"
            return RestError(f"{self.url}: its certificate is not trusted ({cause.verify_message}); {who}")
        if isinstance(cause, ssl.SSLError):
            return RestError(f"{self.url}: does not speak TLS as expected ({_short(cause)}): is it http:// instead of https://?")
        if isinstance(cause, TimeoutError):
            return RestError(f"{place}: no answer within {self.silence_s:g} s", again=True)
        if isinstance(cause, HTTPException):
            told = f"no proper answer ({type(cause).__name__}: {_short(cause)}): {_HINT[:-1]}, and http or https?"
            return RestError(f"{place}: {told}", again=True)
        return RestError(f"{self.url}: cannot be reached ({getattr(cause, 'strerror', None) or _short(cause)})", again=True)


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise RestError(f"'{_short(url.rpartition('@')[2])}' is no address of a REST API: write http://HOST:8081")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _flink_reason(error: HTTPError) -> str:
    """What the last of Flink's ``errors`` says, without stack and class; empty if the answer is not Flink's."""
    try:
        first = str(json.loads(error.read(LARGEST_BYTES))["errors"][-1]).strip().splitlines()[0]
    except (OSError, HTTPException, ValueError, TypeError, LookupError, RecursionError):
        return ""
    return _short(first.rpartition("Exception: ")[2])


def _short(text: object) -> str:
    shown = " ".join(str(text).split())
    return shown if len(shown) <= 160 else shown[:157] + "..."
