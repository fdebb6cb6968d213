"""`storage:`: flat, a distributed file system or an object store, as it is written, as the model has it, as Flink writes it.

`sim.scenario.build` calls the builder.  It knows no job.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sim.model.catalogs.catalog import pages
from sim.scenario.grammar.section import add_key, with_key
from sim.scenario.storage.document import Storage
from sim.scenario.storage.page import STORAGE_PAGES, StoragePage

__all__ = ["with_storage"]

for _page in pages(sys.modules[__name__], StoragePage):
    STORAGE_PAGES.add(_page)
    if _page.key not in Storage.model_fields:
        add_key(Storage, _page.name, _page.section)


@contextmanager
def with_storage(page: StoragePage) -> Iterator[None]:
    """Scenarios may have this kind of storage, too, until the block ends."""
    with STORAGE_PAGES.with_record(page), with_key(Storage, page.name, page.section):
        yield
