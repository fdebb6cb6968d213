"""Logs of JobManagers of a real Flink of which a TaskManager was killed."""

import re
from datetime import datetime
from functools import cache


@cache
def seconds_after(killed, log, pattern):
    """When such lines were written, in seconds since the kill."""
    stamps = [
        datetime.fromisoformat(line[:23].replace(",", "."))
        for line in log.read_text().splitlines()
        if re.search(pattern, line)
    ]
    return [at for stamp in stamps if (at := (stamp - datetime.fromisoformat(killed)).total_seconds()) > 0]
