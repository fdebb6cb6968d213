"""Where state is written to and read from: files, what they cost, what is slow, what fails.

The hosts of `sim.runtime` call it.  It knows names and bytes of files, and no checkpoint that they belong to.
"""

from sim.model.catalogs.catalog import pages
from sim.storage import media
from sim.storage.failures import DiskFull, StorageFailed
from sim.storage.filesystem import CheckpointStorage, FileSystem
from sim.storage.ledger import FileId, FileLedger, StoredFile
from sim.storage.medium import MEDIA, MediumPage
from sim.storage.stream import FileStream

__all__ = ["CheckpointStorage", "DiskFull", "FileId", "FileLedger", "FileStream", "FileSystem", "StorageFailed", "StoredFile"]

for _page in pages(media, MediumPage):
    MEDIA.add(_page)
