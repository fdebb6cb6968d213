"""Checkpoint storage and state backends: files, their cost in time, slow nodes and failures.

The hosts of `sim.runtime` call it.  It has no notion of checkpoints, only of files with names and sizes.
"""

from sim.model.catalogs import find_definitions
from sim.storage import media
from sim.storage.filesystem import CheckpointStorage, FileStream, FileSystem
from sim.storage.ledger import DiskFull, FileId, FileLedger, StorageFailed, StoredFile
from sim.storage.medium import MEDIA, MediumPlugin

__all__ = [
    "CheckpointStorage",
    "DiskFull",
    "FileId",
    "FileLedger",
    "FileStream",
    "FileSystem",
    "StorageFailed",
    "StoredFile",
]

for _plugin in find_definitions(media, MediumPlugin):
    MEDIA.add(_plugin)
