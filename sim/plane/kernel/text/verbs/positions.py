"""Where a task stands in its channels, copied column by column behind `words[g.copied]` (P2, P8)."""

from sim.plane.kernel.rows import PlaneState


def bare_position(w: PlaneState, t: int) -> int:
    """Records served; by input channel bytes and records read; by output channel bytes and records written.  Returns the late ones."""
    task = w.tasks[t]
    w.words[w.g.copied] = task.served
    at = w.g.copied + 1
    n = inputs(w, t)
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            ch = w.channels[w.words[k]]
            w.words[at] = ch.consumed
            w.words[at + n] = ch.records_in
            at += 1
    at += n
    n = outputs(w, t)
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            w.words[at] = w.channels[c].written
            w.words[at + n] = w.channels[c].records_out
            at += 1
    return task.late


def counted(w: PlaneState, t: int, earlier: int) -> int:
    """Records read by input channel, and written by output channel; returns those served.  `earlier`: there were other attempts."""
    task = w.tasks[t]
    at = w.g.copied
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            ch = w.channels[w.words[k]]
            w.words[at] = ch.records_in
            if earlier == 1:
                w.words[at] += ch.earlier_read
            at += 1
    for p in range(task.first_partition, task.last_partition):
        part = w.partitions[p]
        for c in range(part.first_channel, part.first_channel + part.channels):
            w.words[at] = w.channels[c].records_out
            if earlier == 1:
                w.words[at] += w.channels[c].earlier_written
            at += 1
    return task.served + task.earlier_served


def inputs(w: PlaneState, t: int) -> int:
    """How many channels the task reads."""
    n = 0
    for i in range(w.tasks[t].first_gate, w.tasks[t].last_gate):
        n += w.gates[i].channels
    return n


def outputs(w: PlaneState, t: int) -> int:
    """How many channels the task writes."""
    n = 0
    for p in range(w.tasks[t].first_partition, w.tasks[t].last_partition):
        n += w.partitions[p].channels
    return n
