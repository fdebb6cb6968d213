"""When files were being deleted: Flink triggers no checkpoint while it cleans up too many."""

from __future__ import annotations

from sim.checkers.garbage import longest_deletion_ns
from sim.runtime.context import Context


def deletions(context: Context) -> list[tuple[int, int]]:
    """(begin, end) of each deletion [ns], by begin.  One that is still under way ends now, unless no client insists for so long."""
    files, now_ns = context.storage.files, int(context.env.now)
    since_ns = now_ns - longest_deletion_ns(context.scenario.storage, len(files))
    times = ((row.deleted_ns, row.removed_ns) for row in files if row.deleted_ns is not None)
    return sorted(
        (begin_ns, now_ns if end_ns is None else end_ns) for begin_ns, end_ns in times if end_ns is not None or begin_ns > since_ns
    )
