"""What lies in checkpoint storage: one row per file a snapshot named, one per snapshot that is kept, one per restore of a job instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from sim.metrics.schema import FILES, RESTORES, SNAPSHOTS
from sim.model.stored import ClaimMode, StateFile, StoredSnapshot, Verdict

__all__ = ["FileRow", "RestoreRow", "SnapshotRow", "files_table", "restores_table", "snapshots_table"]

_MS = 1_000_000


class FileRow(NamedTuple):
    file: StateFile
    path: str
    job: int  # the newest instance that named it; the next two are its checkpoints
    created_by: int
    last_used: int
    deleted_ns: int  # -1: it is there
    needed_by: tuple[StoredSnapshot, ...] = ()  # those kept at the end


class SnapshotRow(NamedTuple):
    snapshot: StoredSnapshot
    directory: str
    verdict: Verdict
    relocatable_root: bool
    restorable: bool  # all its files are there
    would_break: tuple[StoredSnapshot, ...]  # if it is disposed of with all it names
    would_break_job: tuple[StoredSnapshot, ...]  # if the directory of its job is removed


class RestoreRow(NamedTuple):
    job: int
    claim: ClaimMode
    restored: StoredSnapshot
    begun_ns: int
    first_checkpoint: int = -1  # the first that completed
    first_type: str = ""
    first_written_bytes: int = 0
    first_duration_ns: int = -1  # its end-to-end duration
    free_ns: int = -1  # when nothing this instance keeps needed the restored snapshot any more; -1: never
    deletable: bool = False  # by its user, at the end, without breaking a newer snapshot


def files_table(rows: Iterable[FileRow]) -> pd.DataFrame:
    return _frame(FILES, [
        (row.file.instance, row.file.checkpoint, row.path, row.file.size_bytes, row.file.scope, row.job, row.created_by, row.last_used,
         _ms(row.deleted_ns), _names(row.needed_by))
        for row in rows
    ])  # fmt: skip


def snapshots_table(rows: Iterable[SnapshotRow]) -> pd.DataFrame:
    return _frame(SNAPSHOTS, [_snapshot_row(row) for row in rows])


def restores_table(rows: Iterable[RestoreRow]) -> pd.DataFrame:
    return _frame(RESTORES, [_restore_row(row) for row in rows])


def _snapshot_row(row: SnapshotRow) -> tuple[Any, ...]:
    verdict = row.verdict
    job = "n/a" if verdict.relocatable_job_dir is None else "yes" if verdict.relocatable_job_dir else "no"
    return (
        row.snapshot.instance, row.snapshot.checkpoint, row.snapshot.type, row.directory, verdict.files_total, verdict.bytes_total,
        verdict.files_outside_chk_dir, verdict.files_outside_job_dir, " ".join(map(str, verdict.owners)), verdict.chain_length,
        verdict.absolute_paths, verdict.self_contained, verdict.relocatable_own_dir, job, row.relocatable_root, row.restorable,
        _names(row.would_break), _names(row.would_break_job),
    )  # fmt: skip


def _restore_row(row: RestoreRow) -> tuple[Any, ...]:
    full = row.first_type == "full"
    return (
        row.job, row.claim, row.restored.instance, row.restored.checkpoint, row.restored.type, row.begun_ns / _MS, row.first_checkpoint,
        row.first_type, row.first_written_bytes, _ms(row.first_duration_ns), row.first_written_bytes if full else 0,
        _ms(row.first_duration_ns) if full else -1.0, -1.0 if row.free_ns < 0 else (row.free_ns - row.begun_ns) / _MS, row.deletable,
    )  # fmt: skip


def _names(snapshots: Iterable[StoredSnapshot]) -> str:
    return " ".join(f"{snapshot.instance}/{snapshot.checkpoint}" for snapshot in snapshots)


def _ms(ns: int) -> float:
    return -1.0 if ns < 0 else ns / _MS


def _frame(columns: Iterable[Any], rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame.from_records(rows, columns=[column.name for column in columns])
