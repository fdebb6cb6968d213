"""The two timers: flushing a task's outputs (F1, O6) and sizing a gate's buffers (D1-D4).

All members of a timer share its period, so their order by (time, number) is a circle: sorted once, walked forever.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.ahead import catch_up
from sim.plane.kernel.text.channels.messages import tell_sender
from sim.plane.kernel.text.channels.output import flush
from sim.plane.kernel.text.draws import scaled
from sim.plane.kernel.text.names import HALTED, RESIZE
from sim.plane.kernel.text.tree import schedule


def flush_event(w: PlaneState) -> None:
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
    """Buffers of a gate are as large as it drains within the target time (D2-D4)."""
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
    """Bytes and active time since the last run; without active time the rate stays what it was."""
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
    """D3."""
    gate = w.gates[i]
    total = 0
    for k in range(gate.first_channel, gate.first_channel + gate.channels):
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
    """2**-32 bytes to bytes, half to even."""
    integer = size >> 32
    part = size - (integer << 32)
    half = 1 << 31
    if part > half or (part == half and (integer & 1) == 1):
        integer += 1
    return integer


def announce(w: PlaneState, i: int, size: int) -> None:
    """D4."""
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
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            tell_sender(w, w.words[k], RESIZE, size)
