"""Timers, the event loop, and `dispatch_operation`, the kernel's only entry point."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    ADVANCE,
    CAPTURE,
    CAPTURED_INPUT,
    CATCH_UP,
    CONVERT,
    COUNTED,
    FIRING,
    FORWARD,
    HALT,
    HALTED,
    HELD,
    HOLD,
    INTERRUPT,
    LOCK,
    NEVER,
    POLLED,
    POSITION,
    PRIORITISE,
    RELEASE,
    RELEASE_CAPTURE,
    RELEASE_LATE_OUTPUTS,
    REPORT_WRITTEN,
    RESIZE,
    RESTORE_TASK,
    RESUME_ALL,
    SAMPLE_SERVED,
    SCALE,
    SETTLE,
    START,
    SUM_IN_FLIGHT,
    SUM_UP,
    SWEEP,
    WAIT_FOR_LATE,
    append_turn,
    become,
    record_size,
    scaled,
    schedule,
    set_leaf,
    wake,
    wake_between_records,
)
from sim.plane.text.channels import (
    catch_up,
    catch_up_all,
    flush,
    forward_line_event,
    notify_sender,
    reverse_line_event,
    send,
)
from sim.plane.text.task import end_firing, end_service, release_late_outputs, report_written, turn, wait_for_late
from sim.plane.text.verbs import (
    bare_position,
    capture,
    captured_input,
    convert_output,
    copy_record_counts,
    drop_event,
    forward,
    halt,
    prioritise,
    release_capture,
    restore_task,
    resume,
    settle,
    sum_in_flight,
    sum_up,
    sweep,
)

# ---- The two timers: flushing a task's outputs (F1, O6) and sizing a gate's buffers (D1-D4).
#
# All members of a timer share its period, so their order by (time, number) is a circle: sorted once, walked forever.


def flush_event(w: PlaneState) -> None:
    """Flush the outputs of the next task of the timer (F1, O6), and schedule the task after it.

    The timer's list has entries (offset in the period, task) by offset, starting at `words[flush_from]`.
    """
    g = w.g
    t = w.words[g.flush_from + 2 * g.flush_at + 1]
    g.flush_at += 1
    if g.flush_at == g.flush_n:
        g.flush_at = 0
        g.flush_base += g.timeout
    schedule(w, g.flush_rank, g.flush_base + w.words[g.flush_from + 2 * g.flush_at])
    if w.tasks[t].state != HALTED:
        catch_up(w, t)
        flush(w, t)


def debloat_event(w: PlaneState) -> None:
    """Set the buffer size of the next gate of the timer (D1), and schedule the gate after it.

    The timer's list has entries (offset in the period, gate) by offset, starting at `words[debloat_from]`.
    """
    g = w.g
    i = w.words[g.debloat_from + 2 * g.debloat_at + 1]
    g.debloat_at += 1
    if g.debloat_at == g.debloat_n:
        g.debloat_at = 0
        g.debloat_base += g.period
    schedule(w, g.debloat_rank, g.debloat_base + w.words[g.debloat_from + 2 * g.debloat_at])
    if w.tasks[w.gates[i].task].state != HALTED:
        debloat(w, i)


def debloat(w: PlaneState, i: int) -> None:
    """Set the buffer size of a gate so that its buffers are drained within the target time (D2-D4).

    Sizes are in units of 2**-32 bytes.  The new size is an exponential moving average (Flink: BufferSizeEMA).
    """
    g = w.g
    gate = w.gates[i]
    measure(w, i)
    desired = scaled(gate.rate_bytes, g.target, gate.rate_ns)
    if desired > 1 << 30:
        desired = 1 << 30
    inst = (desired << 32) // buffers_in_use(w, i)
    if inst > 2 * gate.last_size:
        inst = 2 * gate.last_size
    size = gate.last_size + ((inst - gate.last_size) * 2) // (g.samples + 1)
    if size < g.min_bytes << 32:
        size = g.min_bytes << 32
    if size > g.segment_bytes << 32:
        size = g.segment_bytes << 32
    gate.last_size = size
    announce(w, i, rounded(size))


def measure(w: PlaneState, i: int) -> None:
    """Measure bytes polled and active time since the last measurement.  If the gate was not active, keep the old rate."""
    gate = w.gates[i]
    if gate.active == 1:
        gate.active_ns += w.g.now - gate.active_since
        gate.active_since = w.g.now
    if gate.active_ns > 0:
        gate.rate_bytes = gate.polled_bytes
        gate.rate_ns = gate.active_ns
    gate.polled_bytes = 0
    gate.active_ns = 0


def buffers_in_use(w: PlaneState, i: int) -> int:
    """Return the number of buffers in use in the channels of a gate, at least 1 (D3)."""
    gate = w.gates[i]
    total = 0
    for k in range(gate.first_channel, gate.last_channel):
        ch = w.channels[w.words[k]]
        if ch.local == 1:
            total += ch.buffers
        else:
            total += ch.received_buffers
            if ch.required > w.g.exclusive:
                total += ch.required - w.g.exclusive
    if total < 1:
        return 1
    return total


def rounded(size: int) -> int:
    """Convert a size in units of 2**-32 bytes to bytes, rounding half to even."""
    integer = size >> 32
    part = size - (integer << 32)
    half = 1 << 31
    if part > half or (part == half and (integer & 1) == 1):
        integer += 1
    return integer


def announce(w: PlaneState, i: int, size: int) -> None:
    """Announce a buffer size [bytes] to the senders of a gate if it has changed enough or reaches a limit (D4)."""
    g = w.g
    gate = w.gates[i]
    old = gate.announced_bytes
    change = size - old
    if change < 0:
        change = -change
    if change == 0:
        return
    if size <= g.min_bytes or size >= g.segment_bytes or change >= old * g.threshold // 100:
        gate.announced_bytes = size
        for k in range(gate.first_channel, gate.last_channel):
            notify_sender(w, w.words[k], RESIZE, size)


# ---- The loop: work items, then the next event, up to a notice or a time (E1-E3).


def advance(w: PlaneState, until: int) -> int:
    """Process work items and data events before the time `until`; stop after the first step that produces notices (E3).

    Return the number of pending notices.
    """
    g = w.g
    while g.now < until and g.noted == 0:
        if g.work_n > 0:
            item = w.ring[g.work_head]
            g.work_head = (g.work_head + 1) & g.work_mask
            g.work_n -= 1
        else:
            item = next_event(w, until)
        if item >= g.tasks:
            send(w, item - g.tasks)
        elif item >= 0:
            turn(w, item)
    return g.noted


def sample_served(w: PlaneState, first: int, every: int, times: int) -> int:
    """Copy the number of records served by each task at the times `first`, `first + every`, ..., at most `times` of them.

    Stop early at a notice.  Return the number of times reached; their rows start at `words[served_samples]`.
    """
    g = w.g
    for n in range(times):
        if advance(w, first + n * every) > 0:
            return n
        catch_up_all(w)
        at = g.served_samples + n * g.tasks
        for t in range(g.tasks):
            w.words[at + t] = w.tasks[t].served
    return times


def next_event(w: PlaneState, until: int) -> int:
    """Process the next event, or set the clock to `until` (E1).

    Return the task whose turn follows immediately; -1 if it was appended to the list of work or there is none.

    The task's leaf in the event tree is cleared only by the next call, because its next service usually overwrites it.
    """
    g = w.g
    if g.stale >= 0:
        set_leaf(w, g.stale, NEVER)
        g.stale = -1
    key = w.tree[1]
    time = key >> g.shift
    if time >= until:
        g.now = until
        g.reached = until << g.shift
        return -1
    g.now = time
    if key > g.reached:
        g.reached = key
    rank = key - (time << g.shift)
    if rank < g.tasks:
        g.stale = rank
        serving = w.tasks[rank].serving
        if serving == 1:
            end_service(w, rank)
            if g.work_n == 0:
                return rank
        elif serving == FIRING:
            end_firing(w, rank)
        wake(w, rank)
    elif rank == g.tasks:
        reverse_line_event(w)
    elif rank == g.flush_rank:
        flush_event(w)
    elif rank == g.debloat_rank:
        debloat_event(w)
    else:
        forward_line_event(w, rank - g.tasks)
    return -1


# ---- The only door into the kernel: one function with one signature for every operation, so that the compiler makes one.


def dispatch_operation(w: PlaneState, op: int, t: int, a: int, b: int, c: int, d: int) -> int:
    """Execute operation `op` (`basics`) for task `t`.  The meaning of the arguments `a` to `d` depends on the operation.

    Return its result, which is 0 for most operations.  Notices of the previous operation are discarded: the caller must
    have read them.
    """
    w.g.noted = 0
    if op == ADVANCE:
        return advance(w, a)
    if op == SAMPLE_SERVED:
        return sample_served(w, a, b, c)
    if op == CATCH_UP or op == SWEEP or op == SUM_UP or op == SUM_IN_FLIGHT:
        catch_up_all(w)
    else:
        catch_up(w, t)
    if op == START:
        start(w)
    elif op == FORWARD:
        return forward(w, t, a, b, c, d)
    elif op == CONVERT:
        return convert_output(w, t, a)
    elif op == PRIORITISE:
        prioritise(w, t, a)
    elif op == RESUME_ALL:
        resume(w, t, a)
    elif op == SETTLE:
        settle(w, t, a, b)
    elif op == CAPTURE:
        capture(w, t, a)
    elif op == CAPTURED_INPUT:
        return captured_input(w, t)
    elif op == POLLED:
        return polled(w, t)
    elif op == POSITION:
        return bare_position(w, t)
    elif op == COUNTED:
        return copy_record_counts(w, t, a)
    elif op == RELEASE_CAPTURE:
        release_capture(w, t)
    elif op == INTERRUPT:
        interrupt(w, t, a)
    elif op == HOLD:
        return hold(w, t)
    elif op == RELEASE:
        return release(w, t)
    elif op == SCALE:
        scale(w, t, a, b)
    elif op == RELEASE_LATE_OUTPUTS:
        release_late_outputs(w, t, a)
    elif op == WAIT_FOR_LATE:
        wait_for_late(w, t)
    elif op == REPORT_WRITTEN:
        report_written(w, t)
    elif op == HALT:
        halt(w, t)
    elif op == SWEEP:
        sweep(w)
    elif op == SUM_UP:
        sum_up(w, a)
    elif op == SUM_IN_FLIGHT:
        sum_in_flight(w)
    elif op == RESTORE_TASK:
        restore_task(w, t)
    return 0


def interrupt(w: PlaneState, t: int, behind: int) -> None:
    """Report when the thread of a task is between two records (E4).

    With `behind` = 1, let it take its next element first, if there is one.
    """
    task = w.tasks[t]
    task.interrupted = 1
    if behind == 1 and task.source != LOCK:
        task.behind = 1
    wake_between_records(w, t)


def scale(w: PlaneState, t: int, num: int, den: int) -> None:
    """Multiply the duration of services that start from now on by num / den (E4)."""
    w.tasks[t].slow_num = num
    w.tasks[t].slow_den = den


def polled(w: PlaneState, t: int) -> int:
    """Return the bytes that a task has taken from all its gates in all attempts."""
    task = w.tasks[t]
    total = task.earlier_in
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.last_channel):
            total += w.channels[w.words[k]].taken
    return total


def start(w: PlaneState) -> None:
    """Start the plane: compute the end of each channel's first record, append a turn of every task, and set the timers."""
    g = w.g
    for c in range(g.channels):
        ch = w.channels[c]
        gate = w.gates[ch.gate]
        ch.record_end = record_size(w, c, gate.size_table, gate.size_n, 0)
    for t in range(g.tasks):
        append_turn(w, t)
    if g.flush_n > 0:
        schedule(w, g.flush_rank, g.flush_base + w.words[g.flush_from])
    if g.debloat_n > 0:
        schedule(w, g.debloat_rank, g.debloat_base + w.words[g.debloat_from])


def hold(w: PlaneState, t: int) -> int:
    """Reserve the thread for the control plane (E4).

    Return 1 if it is reserved, 0 if it cannot be: it is in service, inside a record, or halted.
    """
    task = w.tasks[t]
    if task.serving > 0 or task.emitting == 1 or task.in_hand > 0 or task.state == HALTED:
        return 0
    task.held = 1
    become(w, t, HELD)
    drop_event(w, t)
    return 1


def release(w: PlaneState, t: int) -> int:
    """Release a reserved thread.  Its state stays HELD until its next turn.  Return 1, or 0 if it was not reserved."""
    task = w.tasks[t]
    if task.held == 0 or task.state == HALTED:
        return 0
    task.held = 0
    append_turn(w, t)
    return 1
