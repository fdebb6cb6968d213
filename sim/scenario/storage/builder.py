"""The `storage:` section -> the model, and every check that needs values."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path as FilePath

from sim.model.catalogs.option import options_of
from sim.model.storage import NOT_FLAT, STORAGES, Disk, FileMerging, Retry, Storage
from sim.scenario.grammar.options import built
from sim.scenario.storage import document as doc
from sim.scenario.storage.page import STORAGE_PAGES, StoragePage
from sim.scenario.storage.slow_places import build_slow
from sim.scenario.text.problems import DocumentPath, Reading

_HERE = "storage"


def build_storage(given: doc.Storage, reading: Reading, folder: FilePath) -> Storage:
    """Mistakes go to `reading`."""
    slow, page = given.slow, _page(given, reading)
    if given.retry is not None and given.retry.timeout == 0:
        reading.wrong((_HERE, "retry", "timeout"), "of 0 fails every attempt: write at least '1 ms'")
    return built(
        Storage,
        given,
        (_HERE,),
        reading,
        slow_probability=None if slow is None else float(slow.share),
        slow_factor=None if slow is None else slow.factor,
        **({} if page is None else {_place(page): page.build(getattr(given, page.key), reading, folder)}),
        disk=_disk(given.disk, reading, folder),
        retry=built(Retry, given.retry, (_HERE, "retry"), reading),
        merging=_merging(given, page, reading),
    )


def _disk(given: doc.Disk | None, reading: Reading, folder: FilePath) -> Disk:
    here: DocumentPath = (_HERE, "disk")
    if given is None:
        return Disk()
    if given.slow is not None and given.bandwidth is None:
        reading.wrong((*here, "slow"), "has no effect on a disk that takes no time: write its bandwidth")
    return built(Disk, given, here, reading, slow=build_slow(given.slow, (*here, "slow"), reading, folder))


def _place(page: StoragePage) -> str:
    """The field of the model that holds the options of a kind."""
    return page.key if page.key in {field.name for field in fields(Storage)} else "other"


def _page(given: doc.Storage, reading: Reading) -> StoragePage | None:
    """The kind of storage; None: it is flat."""
    written = [page for page in STORAGE_PAGES.values() if getattr(given, page.key) is not None]
    page = written[0] if written else None
    for other in written[1:]:
        reading.wrong((_HERE, other.name), f"storage is a {written[0].name} already: write one of the two")
    for key, record in options_of(Storage).items():
        if page is not None and record.excludes == NOT_FLAT and getattr(given, key.replace("-", "_")) is not None:
            has = f": write {page.name}: {{{page.instead[key]}: ...}}" if key in page.instead else ""
            reading.wrong((_HERE, key), f"is a key of flat storage, which has no {page.name}{has}")
    if page is None and given.nic is not None:
        kinds = " or ".join(f"{name}:" for name in STORAGE_PAGES)
        reading.wrong((_HERE, "nic"), f"has no effect: the streams of flat storage share nothing; write {kinds}")
    return page


def _merging(given: doc.Storage, page: StoragePage | None, reading: Reading) -> FileMerging | None:
    merging, here = given.file_merging, (_HERE, "file-merging")
    if isinstance(merging, doc.FileMerging):
        options: FileMerging | None = built(FileMerging, merging, here, reading)
    else:
        options = FileMerging() if merging in ("on", "true") else None
    if options is not None and page is not None and not (kind := STORAGES[page.name]).appends:
        article = "an" if kind.title[0] in "aeiou" else "a"
        reading.wrong(here, f"needs files that can be appended to: {article} {kind.title} has none")
    return options
