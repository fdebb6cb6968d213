"""Recordings as documents, to be changed."""

import gzip
import json

from tests.places import RECORDINGS


def document(name="p4-severe-unaligned"):
    return json.loads(gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes()))
