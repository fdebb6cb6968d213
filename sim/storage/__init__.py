"""Where state is written to and read from: files, what they cost, what is slow, what fails."""

import sys

from sim.model.catalog import pages
from sim.storage.failures import DiskFull, StorageFailed
from sim.storage.filesystem import CheckpointStorage, FileSystem
from sim.storage.ledger import FileId, FileLedger, StoredFile
from sim.storage.medium import MEDIA, MediumPage
from sim.storage.stream import Stream

__all__ = ["CheckpointStorage", "DiskFull", "FileId", "FileLedger", "FileSystem", "StorageFailed", "StoredFile", "Stream"]

for _page in pages(sys.modules[__name__], MediumPage):
    MEDIA.add(_page)
