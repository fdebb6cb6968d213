"""What tests read off runs of a job with windows: a vertex `win`, and a sink behind it."""


def read(result, vertex="sink", until=22):
    """Records the subtasks of a vertex have read in each second up to a time."""
    rows = result.series[(result.series["vertex"] == vertex) & (result.series["time"] <= until)]
    return rows.groupby("time")["numRecordsInPerSecond"].sum()


def sizes(result):
    """Bytes of the windows' state, by checkpoint."""
    rows = result.subtasks[result.subtasks["vertex"] == "win"]
    return (rows["checkpointed_size"] - rows["alignment_persisted"]).groupby(rows["id"]).sum()
