"""The only door into the kernel: one function with one signature for every operation, so that the compiler makes one."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.advance import advance, look
from sim.plane.kernel.text.ahead import catch_up, catch_up_all
from sim.plane.kernel.text.draws import record_size
from sim.plane.kernel.text.names import (
    ADVANCE,
    CAPTURE,
    CAPTURED_IN,
    CAPTURED_OUT,
    CATCH_UP,
    CONVERT,
    COUNTED,
    FLYING,
    FORWARD,
    HALT,
    HALTED,
    HELD,
    HOLD,
    INTERRUPT,
    LET_GO,
    LOCK,
    LOOK,
    PAUSE,
    POLLED,
    POSITION,
    PRIORITISE,
    RELEASE,
    RELEASE_CAPTURE,
    REPORT_WRITTEN,
    RESUME_ALL,
    SCALE,
    SETTLE,
    STAND,
    START,
    SUM_UP,
    SWEEP,
    WAIT_FOR_LATE,
)
from sim.plane.kernel.text.task.late import let_go, report_written, wait_for_late
from sim.plane.kernel.text.tree import schedule
from sim.plane.kernel.text.verbs.capture import capture, captured_in, captured_out, release_capture
from sim.plane.kernel.text.verbs.markers import convert_output, forward, prioritise, resume, settle
from sim.plane.kernel.text.verbs.positions import bare_position, counted
from sim.plane.kernel.text.verbs.restarts import drop_event, halt, stand, sweep
from sim.plane.kernel.text.verbs.sums import flying, sum_up
from sim.plane.kernel.text.work import append_turn, become, wake_between_records


def door(w: PlaneState, op: int, t: int, a: int, b: int, c: int, d: int) -> int:
    """Operation `op` on the plane's state, for task t and with arguments of its own; most return 0.

    The notices of the operation before have been read.
    """
    w.g.noted = 0
    if op == ADVANCE:
        return advance(w, a)
    if op == LOOK:
        return look(w, a, b, c)
    if op == CATCH_UP or op == SWEEP or op == SUM_UP or op == FLYING:
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
    elif op == CAPTURED_IN:
        return captured_in(w, t)
    elif op == CAPTURED_OUT:
        return captured_out(w, t)
    elif op == POLLED:
        return polled(w, t)
    elif op == POSITION:
        return bare_position(w, t)
    elif op == COUNTED:
        return counted(w, t, a)
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
    elif op == LET_GO:
        let_go(w, t, a)
    elif op == WAIT_FOR_LATE:
        wait_for_late(w, t)
    elif op == REPORT_WRITTEN:
        report_written(w, t)
    elif op == PAUSE:
        pause(w, t, a)
    elif op == HALT:
        halt(w, t)
    elif op == SWEEP:
        sweep(w)
    elif op == SUM_UP:
        sum_up(w, a)
    elif op == FLYING:
        flying(w)
    elif op == STAND:
        stand(w, t)
    return 0


def interrupt(w: PlaneState, t: int, behind: int) -> None:
    """The thread says when it is between records, or behind its next element (E4)."""
    task = w.tasks[t]
    task.interrupted = 1
    if behind == 1 and task.source != LOCK:
        task.behind = 1
    wake_between_records(w, t)


def scale(w: PlaneState, t: int, num: int, den: int) -> None:
    """Services that begin later take num / den of their time (E4)."""
    w.tasks[t].slow_num = num
    w.tasks[t].slow_den = den


def pause(w: PlaneState, t: int, on: int) -> None:
    """A source begins no record before it is paused no more (T6)."""
    w.tasks[t].paused = on
    wake_between_records(w, t)


def polled(w: PlaneState, t: int) -> int:
    """Bytes taken from all gates so far."""
    task = w.tasks[t]
    total = task.earlier_in
    for i in range(task.first_gate, task.last_gate):
        gate = w.gates[i]
        for k in range(gate.first_channel, gate.first_channel + gate.channels):
            total += w.channels[w.words[k]].taken
    return total


def start(w: PlaneState) -> None:
    """Every channel learns the end of its first record, every task gets its first turn, the timers are set."""
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
    """The thread works for the control plane (E4); 0: it is in service, inside a record or halted."""
    task = w.tasks[t]
    if task.serving > 0 or task.emitting == 1 or task.in_hand > 0 or task.state == HALTED:
        return 0
    task.held = 1
    become(w, t, HELD)
    drop_event(w, t)
    return 1


def release(w: PlaneState, t: int) -> int:
    """The thread is free again; its state counts as held until its turn.  0: it was not held."""
    task = w.tasks[t]
    if task.held == 0 or task.state == HALTED:
        return 0
    task.held = 0
    append_turn(w, t)
    return 1
