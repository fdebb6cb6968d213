"""One call of the REST interface of a Flink that a benchmark has started."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


class RefusedError(RuntimeError):
    """No answer, or a refusal.  The message names the call."""


def call(url: str, path: str, *, method: str | None = None, body: dict[str, Any] | None = None) -> Any:
    """The answer.  `method`: by default POST with a body, else GET.  RefusedError: there is none."""
    method = method or ("GET" if body is None else "POST")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        with error:
            message = error.read().decode(errors="replace")
    except (OSError, ValueError) as error:
        message = str(error)
    raise RefusedError(f"{method} {path}: {message[:300]}")
