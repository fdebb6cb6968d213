"""Where state is written to and read from: files, what they cost, what is slow, what fails."""

from sim.storage.failures import DiskFull, StorageFailed
from sim.storage.filesystem import CheckpointStorage, FileSystem
from sim.storage.ledger import FileId, FileLedger, StoredFile
from sim.storage.stream import Stream

__all__ = ["CheckpointStorage", "DiskFull", "FileId", "FileLedger", "FileSystem", "StorageFailed", "StoredFile", "Stream"]
