"""Which state may follow which on which event: the table to check against Flink's Alternating* and aligned states.

Aborts lead back to the first state from everywhere.  A barrier of a newer checkpoint aborts the pending one and is then received in
the first state, so its row is the first state's row.
"""

from __future__ import annotations

from sim.protocol.barriers.aligned import CollectingBarriers, WaitingForFirstBarrier
from sim.protocol.barriers.alternating import (
    AlternatingCollectingBarriers,
    AlternatingCollectingBarriersUnaligned,
    AlternatingWaitingForFirstBarrier,
    AlternatingWaitingForFirstBarrierUnaligned,
)
from sim.protocol.task_vocabulary import (
    AlignmentTimedOut,
    BarrierAnnounced,
    BarrierArrived,
    CancellationArrived,
    GateClosed,
    InputEnded,
    TriggerReceived,
)

W, C = WaitingForFirstBarrier, CollectingBarriers
AW, AC = AlternatingWaitingForFirstBarrier, AlternatingCollectingBarriers
UW, UC = AlternatingWaitingForFirstBarrierUnaligned, AlternatingCollectingBarriersUnaligned

TRANSITIONS: dict[type, dict[type, frozenset[type]]] = {
    W: {
        BarrierArrived: frozenset({W, C}),  # W: it was the only one
        CancellationArrived: frozenset({W}),
        TriggerReceived: frozenset({W}),
    },
    C: {
        BarrierArrived: frozenset({C, W}),  # W: the last one
        GateClosed: frozenset({C, W}),
        CancellationArrived: frozenset({W}),
        InputEnded: frozenset({W}),
        TriggerReceived: frozenset({W}),
    },
    AW: {
        BarrierAnnounced: frozenset({AW}),
        BarrierArrived: frozenset({AW, AC, UC}),  # AW: the only one; UC: unaligned or late
        AlignmentTimedOut: frozenset({UW}),
        GateClosed: frozenset({AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    AC: {
        BarrierAnnounced: frozenset({AC, AW}),  # AW: of a newer checkpoint
        BarrierArrived: frozenset({AC, AW, UC}),  # AW: the last one; UC: unaligned or late
        AlignmentTimedOut: frozenset({UC}),
        GateClosed: frozenset({AC, AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    UW: {
        BarrierAnnounced: frozenset({UW, AW}),
        BarrierArrived: frozenset({UC, AW, AC}),  # AW: the only one; AC: of a newer checkpoint
        AlignmentTimedOut: frozenset({UW}),
        GateClosed: frozenset({UW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
    UC: {
        BarrierAnnounced: frozenset({UC, AW}),
        BarrierArrived: frozenset({UC, AW, AC}),  # AW: the last one; AC: of a newer checkpoint
        AlignmentTimedOut: frozenset({UC}),
        GateClosed: frozenset({UC, AW}),
        CancellationArrived: frozenset({AW}),
        InputEnded: frozenset({AW}),
        TriggerReceived: frozenset({AW}),
    },
}
"""state -> event -> states that may follow.  An event not in a state's row is ignored there if it is obsolete, else impossible."""
