"""The answer to a query over HTTP, as a file that is read like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from sim.recordings.source.files import RecordingError
from sim.recordings.source.rest.client import Client
from sim.recordings.source.rest.secrets import masked_text
from sim.sweeps.spark.staging import staging
from sim.traces.lines import TraceFileError

NAME = "prometheus.json"


@contextmanager
def local_copy(place: str) -> Iterator[str]:
    """A place that needs no network: of a URL its answer, in a file that is there meanwhile.  TraceFileError: no usable answer."""
    if not place.startswith(("http://", "https://")):
        yield place
        return
    parts = urlsplit(place)
    base, query = f"{parts.scheme}://{parts.netloc}", f"{parts.path}?{parts.query}" if parts.query else parts.path
    try:
        answer = Client(base).get(query)
    except RecordingError as error:
        raise TraceFileError(masked_text(str(error))) from None
    with staging() as folder:
        (folder / NAME).write_text(json.dumps(answer))
        yield str(folder / NAME)
