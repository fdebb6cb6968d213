"""A client for Flink's REST API, with limits of time and memory, retries, and parallel requests."""

from __future__ import annotations

import base64
import io
import ipaddress
import math
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from multiprocessing.pool import ThreadPool
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit
from urllib.request import (
    AbstractHTTPHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    ProxyHandler,
    Request,
    build_opener,
    getproxies,
    proxy_bypass,
)

from sim.jobs.source.recorded_job import Budget, BudgetError, RecordingError
from sim.model.text import Address, masked_text, one_line

# ---- Connections with a limit on the total time, and without redirects.
#
# The timeout of a socket applies to each read, so a server that sends one byte per second would never exceed it.
# Therefore the timeout is set before each read, to the time that is left.

MAX_REASON_CHARS = 160  # characters of an address in a message
Left = Callable[[], float]
"""A function that returns the seconds until the next read must end, or raises `TimeoutError` if no time is left."""


class NoRedirects(HTTPRedirectHandler):
    """A handler that follows no redirects: another server would receive the headers for this one, possibly unencrypted."""

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> None:
        return None  # an error of this status is raised

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class HTTPInTime(HTTPHandler):
    """An HTTP handler whose connections have a time limit."""

    def __init__(self, left: Left) -> None:
        super().__init__()
        self.left = left

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection, self.left), req)


class HTTPSInTime(HTTPSHandler):
    """An HTTPS handler whose connections have a time limit."""

    def __init__(self, left: Left) -> None:
        # HTTPSHandler.__init__ is not called, because it reads all certificates of the machine (20 ms), even for http.
        AbstractHTTPHandler.__init__(self)
        self.left = left

    @cached_property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPSConnection, self.left), req, context=self.trusted)


def _connection(kind: type[HTTPConnection], left: Left, *args: Any, **options: Any) -> HTTPConnection:
    """Return a connection whose reads have a time limit."""
    connection = kind(*args, **options)
    connection.response_class = partial(_TimedResponse, left)  # type: ignore[assignment]
    return connection


class _TimedResponse(HTTPResponse):
    """A response whose reads have a time limit."""

    def __init__(self, left: Left, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_DeadlineReader(sock, left))


class _DeadlineReader(io.RawIOBase):
    """A reader of a socket that sets the timeout before each read."""

    def __init__(self, sock: socket.socket, left: Left) -> None:
        self.sock = sock
        self.left = left
        self.raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.sock.settimeout(self.left())
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()


# ---- The client: JSON requests with limits on time and memory, retries with exponential backoff, and an error message for
# each kind of failure.  `sim.jobs.source.fetching` decides which requests are sent.

MAX_RECORDING_BYTES = 50_000_000  # maximum size of a response; the details of a job with 10 000 subtasks have 5 MB
SILENCE_S = 10.0  # maximum time between two bytes; Flink's own pekko.ask.timeout has the same default
ANSWER_S = 60.0  # maximum time for one response
ATTEMPTS = 4
FIRST_PAUSE_S = 0.5  # doubles with each retry; jitter keeps clients from retrying at the same time
MAX_REASON = 1_000_000  # bytes of an error response, which may contain a stack trace
RETRYABLE = frozenset({429, 500, 502, 503, 504})  # 503: Flink without a leader, 500: an RPC inside Flink timed out
_HINT = "is this Flink's REST address?"


class RestError(RecordingError):
    """A failed request.  The message contains the endpoint and, if possible, a remedy."""

    def __init__(
        self, place: str, why: str, *, status: int = 0, is_retryable: bool = False, is_final: bool = False
    ) -> None:
        super().__init__(f"{place}: {why}")
        self.why = why
        self.status = status  # HTTP status code; 0 without a response
        self.is_retryable = is_retryable  # whether another attempt may succeed
        self.is_final = is_final  # whether time, memory or requests are used up, so that all further requests fail


class _Reading(threading.local):
    """The deadline of the response that a thread is reading."""

    ends = math.inf  # by time.monotonic()


class Client:
    """A thread-safe client for JSON below one URL.

    Credentials in the URL (``http://user:password@host``) are sent as a header, and are never printed.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
        total_s: float = math.inf,
        max_requests: float = math.inf,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create a client.

        Args:
            url: Address of the REST API.
            headers: Additional headers of each request.
            silence_s: Maximum time between two bytes of a response.
            total_s: Maximum time of all requests together.
            max_requests: Maximum number of requests.
            pause: Function that waits between two attempts.

        Raises:
            RestError: `url` is not an address of a REST API.
        """
        parts = _parse_url(url)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        place = f"{host}:{parts.port}" if parts.port else str(host)
        self.url = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
        self.headers = {"Accept": "application/json", "User-Agent": "ckptsim", **(headers or {})}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self.silence_s = silence_s
        self.total_s = total_s
        self.ends = time.monotonic() + total_s
        self.reading = _Reading()
        self.counting = threading.Lock()
        self.max_requests = max_requests
        self.requests = 0  # sent so far
        self.answered = 0  # number of them with a response
        self.wait = pause
        self.budget = Budget()
        direct = [ProxyHandler({})] if _is_loopback(str(parts.hostname)) else []
        self.opener = build_opener(NoRedirects, HTTPInTime(self._remaining_s), HTTPSInTime(self._remaining_s), *direct)

    def get(self, path: str, *, attempts: int = ATTEMPTS, kept_as: str = "") -> Any:
        """Return the JSON at a path.  Raises `RestError` if the request fails after all retries.

        In the memory budget, a response replaces an earlier one of the same path.  `kept_as` is another name for it there.
        """
        why = ""
        for attempt in range(attempts):
            try:
                return self._attempt(path, kept_as or path)
            except RestError as error:
                if why and error.is_final:
                    raise RestError(self.url + path, f"{why}; then {error.why}", is_final=True) from None
                if not error.is_retryable or attempt == attempts - 1:
                    raise
                why = error.why
            self.pause(FIRST_PAUSE_S * 2**attempt * random.uniform(0.75, 1.25))
        raise AssertionError(f"{attempts} attempts")

    def pause(self, seconds: float) -> None:
        """Wait between two attempts, but not beyond the time limit of all requests."""
        self.wait(max(0.0, min(seconds, self.ends - time.monotonic())))

    def _attempt(self, path: str, kept_as: str) -> Any:
        with self.counting:
            if self.requests >= self.max_requests:
                raise RestError(
                    self.url + path, f"is not asked: {self.max_requests:g} requests were sent", is_final=True
                )
            self.requests += 1
        self.reading.ends = min(time.monotonic() + ANSWER_S, self.ends)
        request = Request(self.url + path, headers=self.headers)
        try:
            with self.opener.open(request, timeout=self._remaining_s()) as answer:
                content = self._read_content(path, answer)
        except HTTPError as error:
            with error:
                raise RestError(
                    self.url + path, _http_error_text(error), status=error.code, is_retryable=error.code in RETRYABLE
                ) from None
        except RestError:
            raise
        except (OSError, HTTPException, ValueError) as error:
            raise self._connection_error(path, error) from None
        with self.counting:
            self.answered += 1
        try:
            return self.budget.parse(content, kept_as)
        except BudgetError as error:
            raise RestError(self.url + path, f"its answer {error}", is_final=error.exceeds_memory) from None
        except (ValueError, RecursionError) as error:
            raise self._no_json_error(path, content, error) from None

    def _remaining_s(self) -> float:
        """Return the seconds until the next read must end.  Raises `TimeoutError` if no time is left."""
        left = self.reading.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.silence_s)

    def _read_content(self, path: str, answer: HTTPResponse) -> bytes:
        content = bytearray()
        while part := answer.read1(1 << 20):
            content += part
            if len(content) > MAX_RECORDING_BYTES:
                raise RestError(self.url + path, f"answers with more than {MAX_RECORDING_BYTES} bytes")
        return bytes(content)

    def _no_json_error(self, path: str, content: bytes, error: Exception) -> RestError:
        start = content.lstrip()[:1]
        if start == b"<":
            why = f"answers with a web page, not with JSON: {_HINT}"
        elif start and start in b"{[":
            why = f"its JSON is cut off or damaged ({one_line(error, MAX_REASON_CHARS)})"
        else:
            why = f"answers with {'something that is not JSON' if start else 'nothing'}: {_HINT}"
        return RestError(self.url + path, why, is_retryable=why.startswith("its JSON"))

    def _connection_error(self, path: str, error: Exception) -> RestError:
        cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            who = "SSL_CERT_FILE may name who vouches for it"
            return RestError(
                self.url, f"its certificate is not trusted ({one_line(cause.verify_message, MAX_REASON_CHARS)}); {who}"
            )
        if isinstance(cause, ssl.SSLError):
            why = f"does not speak TLS as expected ({one_line(cause, MAX_REASON_CHARS)}): is it http:// instead of https://?"
            return RestError(self.url, why)
        if isinstance(cause, TimeoutError):
            return self._timeout_error(path)
        if isinstance(cause, (HTTPException, ValueError)):
            why = f"no proper answer ({type(cause).__name__}: {one_line(cause, MAX_REASON_CHARS)}): {_HINT[:-1]}, and http or https?"
            return RestError(self.url + path, why, is_retryable=True)
        reason = getattr(cause, "strerror", None) or cause
        return RestError(
            self.url,
            f"cannot be reached{self._proxy_clause()} ({one_line(reason, MAX_REASON_CHARS)})",
            is_retryable=True,
        )

    def _proxy_clause(self) -> str:
        """Return a clause about the proxy that the environment variables name, or "" if none is used."""
        parts = urlsplit(self.url)
        proxy = getproxies().get(parts.scheme)
        if proxy is None or _is_loopback(str(parts.hostname)) or proxy_bypass(str(parts.hostname)):
            return ""
        address = one_line(proxy.rpartition("@")[2], MAX_REASON_CHARS)  # without a password
        return f" by the proxy {address} of {parts.scheme}_proxy; no_proxy={parts.hostname} goes without it"

    def _timeout_error(self, path: str) -> RestError:
        now = time.monotonic()
        if now >= self.ends:
            return RestError(
                self.url + path, f"no time is left: {self.total_s:g} s were given for all questions", is_final=True
            )
        if now >= self.reading.ends:
            return RestError(self.url + path, f"the answer does not come to an end within {ANSWER_S:g} s")
        return RestError(self.url + path, f"no answer within {self.silence_s:g} s", is_retryable=True)


def _parse_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid port
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise RestError(
            f"'{one_line(str(Address(url)).rpartition('@')[2], MAX_REASON_CHARS)}'",
            "is not an address of a REST API: write http://HOST:8081; `ckptsim explain` reads files and folders",
        )
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _http_error_text(error: HTTPError) -> str:
    """Return the message for an HTTP error status."""
    if error.code in (401, 407):
        return f"HTTP {error.code}: authentication required: write http://USER:PASSWORD@HOST:PORT, or --header 'Authorization: ...'"
    if error.code == 403:
        return "HTTP 403: access denied"
    if error.code in (301, 302, 303, 307, 308):
        if not (location := error.headers.get("location")):
            return f"HTTP {error.code}: redirects, and does not say where"
        with suppress(ValueError):
            location = urljoin(error.url, location)
        address = one_line(str(Address(location)), MAX_REASON_CHARS)
        return f"HTTP {error.code}: redirects to {address}: if that is Flink, give its address"
    reason = _flink_reason(error)
    return f"HTTP {error.code}: {reason}" if reason else f"HTTP {error.code} {one_line(error.reason)}: {_HINT}"


def _flink_reason(error: HTTPError) -> str:
    """Return the last of Flink's ``errors`` without class name and stack trace, or "" if the response is not from Flink."""
    try:
        first = str(Budget().parse(error.read(MAX_REASON), "")["errors"][-1]).strip().splitlines()[0]
    except (OSError, HTTPException, ValueError, TypeError, LookupError, RecursionError):
        return ""
    return one_line(masked_text(first.rpartition("Exception: ")[2]), MAX_REASON_CHARS)


# ---- Parallel requests: a few at a time, so that a job with a thousand vertices is read in seconds without overloading Flink.

AT_ONCE = 8  # parallel requests; Flink answers with four threads (rest.server.numThreads), the others are in transit
MAX_SEQUENTIAL_REQUESTS = 32  # up to this number, requests are sent one after the other, without threads


def answers_of(client: Client, questions: Sequence[tuple[str, str]]) -> Generator[Any | RestError, None, None]:
    """Yield the response or error of each request (path, name in the memory budget), in the order of the requests.

    Closing the generator cancels requests that have not been sent.  The threads are daemons.
    """

    def answer(question: tuple[str, str]) -> Any | RestError:
        path, kept_as = question
        try:
            return client.get(path, kept_as=kept_as)
        except RestError as error:
            return error

    if len(questions) <= MAX_SEQUENTIAL_REQUESTS:
        yield from map(answer, questions)
        return
    with ThreadPool(AT_ONCE) as pool:
        yield from pool.imap(answer, questions)
