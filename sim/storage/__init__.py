"""Where state is written to and read from: files, costs, slow nodes and failures.

The hosts of `sim.runtime` call it.  It knows names and bytes of files, and no checkpoint that they belong to.
"""

from sim.model.catalog import find_plugins
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

for _page in find_plugins(media, MediumPlugin):
    MEDIA.add(_page)
