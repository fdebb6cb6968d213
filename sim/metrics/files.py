"""The content of checkpoint storage: a row per file that a snapshot named, per snapshot that is kept, and per restore."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from sim.metrics.frame import frame, ms, span_ms
from sim.metrics.schema import Row
from sim.model.stored import ClaimMode, StateFile, StoredSnapshot, Verdict
from sim.units import MS


class FileRow(NamedTuple):
    """A row of the table `files`."""

    file: StateFile
    path: str
    job: int  # the newest instance that named it; the next two are its checkpoints
    created_by: int
    last_used: int
    deleted_ns: int  # -1: it is there
    needed_by: tuple[StoredSnapshot, ...] = ()  # those kept at the end


class SnapshotRow(NamedTuple):
    """A row of the table `snapshots`."""

    snapshot: StoredSnapshot
    directory: str
    verdict: Verdict
    relocatable_root: bool
    restorable: bool  # all its files are there
    would_break: tuple[StoredSnapshot, ...]  # if the snapshot is deleted with all files that it names
    would_break_job: tuple[StoredSnapshot, ...]  # if the directory of its job is removed


class RestoreRow(NamedTuple):
    """A row of the table `restores`."""

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
    return frame("files", map(_file_row, rows))


def snapshots_table(rows: Iterable[SnapshotRow]) -> pd.DataFrame:
    return frame("snapshots", map(_snapshot_row, rows))


def restores_table(rows: Iterable[RestoreRow]) -> pd.DataFrame:
    return frame("restores", map(_restore_row, rows))


def requests_table(rows: Iterable[Row]) -> pd.DataFrame:
    return frame("requests", rows)


def _file_row(row: FileRow) -> Row:
    return {
        "owner": row.file.instance,
        "checkpoint": row.file.checkpoint,
        "path": row.path,
        "size": row.file.size_bytes,
        "scope": row.file.scope,
        "job": row.job,
        "created_by": row.created_by,
        "last_used": row.last_used,
        "deleted": ms(row.deleted_ns),
        "needed_by": _names(row.needed_by),
    }


def _snapshot_row(row: SnapshotRow) -> Row:
    verdict = row.verdict
    job = "n/a" if verdict.relocatable_job_dir is None else "yes" if verdict.relocatable_job_dir else "no"
    return {
        "job": row.snapshot.instance,
        "id": row.snapshot.checkpoint,
        "type": row.snapshot.type,
        "directory": row.directory,
        "files_total": verdict.files_total,
        "bytes_total": verdict.bytes_total,
        "files_outside_chk_dir": verdict.files_outside_chk_dir,
        "files_outside_job_dir": verdict.files_outside_job_dir,
        "owners": " ".join(map(str, verdict.owners)),
        "chain_length": verdict.chain_length,
        "absolute_paths": verdict.absolute_paths,
        "self_contained": verdict.self_contained,
        "relocatable_own_dir": verdict.relocatable_own_dir,
        "relocatable_job_dir": job,
        "relocatable_root": row.relocatable_root,
        "restorable": row.restorable,
        "would_break": _names(row.would_break),
        "would_break_job": _names(row.would_break_job),
    }


def _restore_row(row: RestoreRow) -> Row:
    full = row.first_type == "full"
    return {
        "job": row.job,
        "claim": row.claim,
        "restored_job": row.restored.instance,
        "restored_id": row.restored.checkpoint,
        "restored_type": row.restored.type,
        "begun": row.begun_ns / MS,
        "first_id": row.first_checkpoint,
        "first_type": row.first_type,
        "first_checkpointed_size": row.first_written_bytes,
        "first_duration": ms(row.first_duration_ns),
        "bytes_reuploaded_first_full": row.first_written_bytes if full else 0,
        "first_full_duration": ms(row.first_duration_ns) if full else -1.0,
        "time_until_old_snapshot_deletable": span_ms(row.begun_ns, row.free_ns),
        "deletable": row.deletable,
    }


def _names(snapshots: Iterable[StoredSnapshot]) -> str:
    return " ".join(f"{snapshot.instance}/{snapshot.checkpoint}" for snapshot in snapshots)
