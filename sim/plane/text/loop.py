"""Timers, the event loop, and `dispatch_operation`, the kernel's only entry point."""

from sim.plane.text.basics import (
    FIRING,
    HALTED,
    HELD,
    LOCK,
    NEVER,
    RESIZE,
    scaled,
)
from sim.plane.text.verbs import Verbs

# ---- Operations of `dispatch_operation`.

(
    ADVANCE,
    START,
    FORWARD,
    CONVERT,
    PRIORITISE,
    RESUME_ALL,
    SETTLE,
    CAPTURE,
    CAPTURED_INPUT,
    RELEASE_CAPTURE,
    INTERRUPT,
    HOLD,
    RELEASE,
    SCALE,
    POLLED,
    HALT,
    SWEEP,
    RESTORE_TASK,
    RELEASE_LATE_OUTPUTS,
    WAIT_FOR_LATE,
    REPORT_WRITTEN,
    CATCH_UP,
    SUM_UP,
    SUM_IN_FLIGHT,
    POSITION,
    COUNTED,
    SAMPLE_SERVED,
) = range(27)


def rounded(size: int) -> int:
    """Convert a size in units of 2**-32 bytes to bytes, rounding half to even."""
    integer = size >> 32
    part = size - (integer << 32)
    half = 1 << 31
    if part > half or (part == half and (integer & 1) == 1):
        integer += 1
    return integer


class Kernel(Verbs):
    """The event loop and the only entry point."""

    __slots__ = ()

    # ---- The two timers: flushing a task's outputs (F1, O6) and sizing a gate's buffers (D1-D4).
    #
    # All members of a timer share its period, so their order by (time, number) is a circle: sorted once, walked forever.

    def flush_event(self) -> None:
        """Flush the outputs of the next task of the timer (F1, O6), and schedule the task after it.

        The timer's list has entries (offset in the period, task) by offset, starting at `words[flush_from]`.
        """
        g = self.g
        t = self.words[g.flush_from + 2 * g.flush_at + 1]
        g.flush_at += 1
        if g.flush_at == g.flush_n:
            g.flush_at = 0
            g.flush_base += g.timeout
        self.schedule(g.flush_rank, g.flush_base + self.words[g.flush_from + 2 * g.flush_at])
        if self.tasks[t].state != HALTED:
            self.catch_up(t)
            self.flush(t)

    def debloat_event(self) -> None:
        """Set the buffer size of the next gate of the timer (D1), and schedule the gate after it.

        The timer's list has entries (offset in the period, gate) by offset, starting at `words[debloat_from]`.
        """
        g = self.g
        i = self.words[g.debloat_from + 2 * g.debloat_at + 1]
        g.debloat_at += 1
        if g.debloat_at == g.debloat_n:
            g.debloat_at = 0
            g.debloat_base += g.period
        self.schedule(g.debloat_rank, g.debloat_base + self.words[g.debloat_from + 2 * g.debloat_at])
        if self.tasks[self.gates[i].task].state != HALTED:
            self.debloat(i)

    def debloat(self, i: int) -> None:
        """Set the buffer size of a gate so that its buffers are drained within the target time (D2-D4).

        Sizes are in units of 2**-32 bytes.  The new size is an exponential moving average (Flink: BufferSizeEMA).
        """
        g = self.g
        gate = self.gates[i]
        self.measure(i)
        desired = scaled(gate.rate_bytes, g.target, gate.rate_ns)
        if desired > 1 << 30:
            desired = 1 << 30
        inst = (desired << 32) // self.buffers_in_use(i)
        if inst > 2 * gate.last_size:
            inst = 2 * gate.last_size
        size = gate.last_size + ((inst - gate.last_size) * 2) // (g.samples + 1)
        if size < g.min_bytes << 32:
            size = g.min_bytes << 32
        if size > g.segment_bytes << 32:
            size = g.segment_bytes << 32
        gate.last_size = size
        self.announce(i, rounded(size))

    def measure(self, i: int) -> None:
        """Measure bytes polled and active time since the last measurement.  If the gate was not active, keep the old rate."""
        gate = self.gates[i]
        if gate.active == 1:
            gate.active_ns += self.g.now - gate.active_since
            gate.active_since = self.g.now
        if gate.active_ns > 0:
            gate.rate_bytes = gate.polled_bytes
            gate.rate_ns = gate.active_ns
        gate.polled_bytes = 0
        gate.active_ns = 0

    def buffers_in_use(self, i: int) -> int:
        """Return the number of buffers in use in the channels of a gate, at least 1 (D3)."""
        gate = self.gates[i]
        total = 0
        for k in range(gate.first_channel, gate.last_channel):
            ch = self.channels[self.words[k]]
            if ch.local == 1:
                total += ch.buffers
            else:
                total += ch.received_buffers
                if ch.required > self.g.exclusive:
                    total += ch.required - self.g.exclusive
        if total < 1:
            return 1
        return total

    def announce(self, i: int, size: int) -> None:
        """Announce a buffer size [bytes] to the senders of a gate if it has changed enough or reaches a limit (D4)."""
        g = self.g
        gate = self.gates[i]
        old = gate.announced_bytes
        change = size - old
        if change < 0:
            change = -change
        if change == 0:
            return
        if size <= g.min_bytes or size >= g.segment_bytes or change >= old * g.threshold // 100:
            gate.announced_bytes = size
            for k in range(gate.first_channel, gate.last_channel):
                self.notify_sender(self.words[k], RESIZE, size)

    # ---- The loop: work items, then the next event, up to a notice or a time (E1-E3).

    def advance(self, until: int) -> int:
        """Process work items and data events before the time `until`; stop after the first step that produces notices (E3).

        Return the number of pending notices.
        """
        g = self.g
        while g.now < until and g.noted == 0:
            if g.work_n > 0:
                item = self.ring[g.work_head]
                g.work_head = (g.work_head + 1) & g.work_mask
                g.work_n -= 1
            else:
                item = self.next_event(until)
            if item >= g.tasks:
                self.send(item - g.tasks)
            elif item >= 0:
                self.turn(item)
        return g.noted

    def sample_served(self, first: int, every: int, times: int) -> int:
        """Copy the number of records served by each task at the times `first`, `first + every`, ..., at most `times` of them.

        Stop early at a notice.  Return the number of times reached; their rows start at `words[served_samples]`.
        """
        g = self.g
        for n in range(times):
            if self.advance(first + n * every) > 0:
                return n
            self.catch_up_all()
            at = g.served_samples + n * g.tasks
            for t in range(g.tasks):
                self.words[at + t] = self.tasks[t].served
        return times

    def next_event(self, until: int) -> int:
        """Process the next event, or set the clock to `until` (E1).

        Return the task whose turn follows immediately; -1 if it was appended to the list of work or there is none.

        The task's leaf in the event tree is cleared only by the next call, because its next service usually overwrites it.
        """
        g = self.g
        if g.stale >= 0:
            self.set_leaf(g.stale, NEVER)
            g.stale = -1
        key = self.tree[1]
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
            serving = self.tasks[rank].serving
            if serving == 1:
                self.end_service(rank)
                if g.work_n == 0:
                    return rank
            elif serving == FIRING:
                self.end_firing(rank)
            self.wake(rank)
        elif rank == g.tasks:
            self.reverse_line_event()
        elif rank == g.flush_rank:
            self.flush_event()
        elif rank == g.debloat_rank:
            self.debloat_event()
        else:
            self.forward_line_event(rank - g.tasks)
        return -1

    # ---- The only door into the kernel: one function with one signature for every operation, so that the compiler makes one.

    def dispatch_operation(self, op: int, t: int, a: int, b: int, c: int, d: int) -> int:
        """Execute operation `op` (`basics`) for task `t`.  The meaning of the arguments `a` to `d` depends on the operation.

        Return its result, which is 0 for most operations.  Notices of the previous operation are discarded: the caller must
        have read them.
        """
        self.g.noted = 0
        if op == ADVANCE:
            return self.advance(a)
        if op == SAMPLE_SERVED:
            return self.sample_served(a, b, c)
        if op == CATCH_UP or op == SWEEP or op == SUM_UP or op == SUM_IN_FLIGHT:
            self.catch_up_all()
        else:
            self.catch_up(t)
        if op == START:
            self.start()
        elif op == FORWARD:
            return self.forward(t, a, b, c, d)
        elif op == CONVERT:
            return self.convert_output(t, a)
        elif op == PRIORITISE:
            self.prioritise(t, a)
        elif op == RESUME_ALL:
            self.resume(t, a)
        elif op == SETTLE:
            self.settle(t, a, b)
        elif op == CAPTURE:
            self.capture(t, a)
        elif op == CAPTURED_INPUT:
            return self.captured_input(t)
        elif op == POLLED:
            return self.polled(t)
        elif op == POSITION:
            return self.bare_position(t)
        elif op == COUNTED:
            return self.copy_record_counts(t, a)
        elif op == RELEASE_CAPTURE:
            self.release_capture(t)
        elif op == INTERRUPT:
            self.interrupt(t, a)
        elif op == HOLD:
            return self.hold(t)
        elif op == RELEASE:
            return self.release(t)
        elif op == SCALE:
            self.scale(t, a, b)
        elif op == RELEASE_LATE_OUTPUTS:
            self.release_late_outputs(t, a)
        elif op == WAIT_FOR_LATE:
            self.wait_for_late(t)
        elif op == REPORT_WRITTEN:
            self.report_written(t)
        elif op == HALT:
            self.halt(t)
        elif op == SWEEP:
            self.sweep()
        elif op == SUM_UP:
            self.sum_up()
        elif op == SUM_IN_FLIGHT:
            self.sum_in_flight()
        elif op == RESTORE_TASK:
            self.restore_task(t)
        return 0

    def interrupt(self, t: int, behind: int) -> None:
        """Report when the thread of a task is between two records (E4).

        With `behind` = 1, let it take its next element first, if there is one.
        """
        task = self.tasks[t]
        task.interrupted = 1
        if behind == 1 and task.source != LOCK:
            task.behind = 1
        self.wake_between_records(t)

    def scale(self, t: int, num: int, den: int) -> None:
        """Multiply the duration of services that start from now on by num / den (E4)."""
        self.tasks[t].slow_num = num
        self.tasks[t].slow_den = den

    def polled(self, t: int) -> int:
        """Return the bytes that a task has taken from all its gates in all attempts."""
        task = self.tasks[t]
        total = task.earlier_in
        for k in range(task.first_input, task.last_input):
            total += self.channels[self.words[k]].taken
        return total

    def start(self) -> None:
        """Start the plane: compute the end of each channel's first record, append a turn of every task, and set the timers."""
        g = self.g
        for c in range(g.channels):
            ch = self.channels[c]
            gate = self.gates[ch.gate]
            ch.record_end = self.record_size(c, gate.size_table, gate.size_n, 0)
        for t in range(g.tasks):
            self.append_turn(t)
        if g.flush_n > 0:
            self.schedule(g.flush_rank, g.flush_base + self.words[g.flush_from])
        if g.debloat_n > 0:
            self.schedule(g.debloat_rank, g.debloat_base + self.words[g.debloat_from])

    def hold(self, t: int) -> int:
        """Reserve the thread for the control plane (E4).

        Return 1 if it is reserved, 0 if it cannot be: it is in service, inside a record, or halted.
        """
        task = self.tasks[t]
        if task.serving > 0 or task.emitting == 1 or task.in_hand > 0 or task.state == HALTED:
            return 0
        task.held = 1
        self.become(t, HELD)
        self.drop_event(t)
        return 1

    def release(self, t: int) -> int:
        """Release a reserved thread.  Its state stays HELD until its next turn.  Return 1, or 0 if it was not reserved."""
        task = self.tasks[t]
        if task.held == 0 or task.state == HALTED:
            return 0
        task.held = 0
        self.append_turn(t)
        return 1
