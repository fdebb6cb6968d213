"""`storage:`: flat, a distributed file system or an object store, as it is written, as the model has it, as Flink writes it.

`sim.scenario.build` calls the builder.  It knows no job.
"""

import sys

from sim.model.catalogs.catalog import pages
from sim.scenario.grammar.section import add_key
from sim.scenario.storage.document import Storage
from sim.scenario.storage.page import STORAGE_PAGES, StoragePage

for _page in pages(sys.modules[__name__], StoragePage):
    STORAGE_PAGES.add(_page)
    if _page.key not in Storage.model_fields:
        add_key(Storage, _page.name, _page.section)
