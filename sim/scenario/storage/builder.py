"""The `storage:` section -> the model, and every check that needs values."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path as FilePath

from sim.model.storage import STORAGES, Disk, FileMerging, Retry, Storage
from sim.scenario.grammar.given import given_values, switch
from sim.scenario.storage import document as doc
from sim.scenario.storage.page import STORAGE_PAGES, StoragePage
from sim.scenario.text.problems import Reading

__all__ = ["build_storage"]

_HERE = "storage"
_FLAT = ("bandwidth", "read-bandwidth", "file-latency", "slow")
"""Keys of flat storage."""


def build_storage(given: doc.Storage, reading: Reading, folder: FilePath) -> Storage:
    """Mistakes go to `reading`."""
    slow, page = given.slow, _page(given, reading)
    return given_values(
        Storage(),
        bytes_per_second=given.bandwidth or None, read_bytes_per_second=given.read_bandwidth or None,
        close_ns=given.file_latency, metadata_ns=given.metadata_latency, inline_threshold_bytes=given.inline_threshold,
        slow_probability=None if slow is None else float(slow.share), slow_factor=None if slow is None else slow.factor,
        nic_bytes_per_second=given.nic or None,
        **({} if page is None else {_place(page): page.build(getattr(given, page.key), reading, folder)}),
        disk=None if given.disk is None else Disk(given.disk.bandwidth or None, given.disk.space),
        retry=_retry(given.retry or doc.Retry(), reading),
        merging=_merging(given, page, reading),
    )  # fmt: skip


def _place(page: StoragePage) -> str:
    """The field of the model that holds the options of a kind."""
    return page.key if page.key in {field.name for field in fields(Storage)} else "other"


def _page(given: doc.Storage, reading: Reading) -> StoragePage | None:
    """The kind of storage; None: it is flat."""
    written = [page for page in STORAGE_PAGES.values() if getattr(given, page.key) is not None]
    page = written[0] if written else None
    for other in written[1:]:
        reading.wrong((_HERE, other.name), f"storage is a {written[0].name} already: write one of the two")
    for key in _FLAT:
        if page is not None and getattr(given, key.replace("-", "_")) is not None:
            has = f": write {page.name}: {{{page.instead[key]}: ...}}" if key in page.instead else ""
            reading.wrong((_HERE, key), f"is a key of flat storage, which has no {page.name}{has}")
    if page is None and given.nic is not None:
        kinds = " or ".join(f"{name}:" for name in STORAGE_PAGES)
        reading.wrong((_HERE, "nic"), f"has no effect: the streams of flat storage share nothing; write {kinds}")
    return page


def _retry(given: doc.Retry, reading: Reading) -> Retry:
    if given.timeout == 0:
        reading.wrong((_HERE, "retry", "timeout"), "of 0 fails every attempt: write at least '1 ms'")
    return given_values(
        Retry(), attempts=given.attempts, backoff_ns=given.backoff, most_backoff_ns=given.max_backoff, timeout_ns=given.timeout,
    )  # fmt: skip


def _merging(given: doc.Storage, page: StoragePage | None, reading: Reading) -> FileMerging | None:
    merging, here = given.file_merging, (_HERE, "file-merging")
    if merging is None or isinstance(merging, str):
        options = FileMerging() if merging in ("on", "true") else None
    else:
        if merging.max_file_size == 0:
            reading.wrong((*here, "max-file-size"), "must be more than 0")
        options = given_values(
            FileMerging(), max_file_bytes=merging.max_file_size, across=switch(merging.across_checkpoints),
            max_space_amplification=merging.max_space_amplification,
        )  # fmt: skip
    if options is not None and page is not None and not (kind := STORAGES[page.name]).appends:
        article = "an" if kind.title[0] in "aeiou" else "a"
        reading.wrong(here, f"needs files that can be appended to: {article} {kind.title} has none")
    return options
