"""Constants of the kernel: plain integers, equal to the interface's enumerations where those exist."""

from sim.plane.seam.interface import MAX_SERIES, OPEN_COUNTS, SINGLES, NoticeKind, Ship, ThreadState, Trait, Wait

IDLE = int(ThreadState.IDLE)
BUSY = int(ThreadState.BUSY)
SOFT = int(ThreadState.SOFT)
HARD = int(ThreadState.HARD)
HELD = int(ThreadState.HELD)
HALTED = int(ThreadState.HALTED)

MAILBOX = int(Wait.MAILBOX)
POLL = int(Wait.POLL)
LOCK = int(Wait.LOCK)

PRIORITY = int(Trait.PRIORITY)
BLOCKING = int(Trait.BLOCKING)
ANNOUNCED = int(Trait.ANNOUNCED)
FINAL = int(Trait.FINAL)

REBALANCE = int(Ship.REBALANCE)
HASH = int(Ship.HASH)
RESCALE = int(Ship.RESCALE)
BROADCAST = int(Ship.BROADCAST)

NOTE_ARRIVED = int(NoticeKind.ARRIVED)
NOTE_ANNOUNCED = int(NoticeKind.ANNOUNCED)
NOTE_SAFE = int(NoticeKind.SAFE)
NOTE_LEFT = int(NoticeKind.LEFT)
NOTE_EXHAUSTED = int(NoticeKind.EXHAUSTED)
NOTE_RECOVERED = int(NoticeKind.RECOVERED)
NOTE_NONE_LATE = int(NoticeKind.NONE_LATE)
NOTE_WRITTEN = int(NoticeKind.WRITTEN)
NOTE_WORDS = 9  # the fields of a notice

MARKER_SERIES = 0  # the one that bounds captures (the interface's BARRIERS)
SERIES = MAX_SERIES
COUNTS = OPEN_COUNTS
ONE_BY_ONE = SINGLES
COUNT_HEAD = 3  # series, number, channels counted; then the bits
BITS = 32  # per word of a bit set

# what an element is, if not a marker
DATA = -1
CREDIT = -2
RESUME = -3
RESIZE = -4
WATCH = -5

NEVER = 0x7FFFFFFFFFFFFFFF  # key of a leaf without an event
READING = 1  # bits of a channel's `current`
FLOATING = 2
OWNED = 4
LOOSE = 8
FORGETTING = 2  # `held` of a task while it starts anew
SEGMENT = 5  # words of a rate segment: first record, start, num, den // num, den % num
VERTEX_SUMS = 6  # the interface's OF_VERTICES
EDGE_SUMS = 4  # the interface's OF_EDGES
TIMED = 1  # `lag` of a task
UNTIMED = 2
FIRING = 2  # `serving` of a task
FARTHEST = 64  # records a task serves ahead of its time: to take back so many costs no more than a verb
FETCHED = 4  # copies: so far ahead asks for its channels who serves ahead
MASK31 = 0x7FFFFFFF
MASK32 = 0xFFFFFFFF


# operations of the door
ADVANCE = 0
START = 1
FORWARD = 2
CONVERT = 3
PRIORITISE = 4
RESUME_ALL = 5
SETTLE = 6
CAPTURE = 7
CAPTURED_IN = 8
CAPTURED_OUT = 9
RELEASE_CAPTURE = 10
INTERRUPT = 11
HOLD = 12
RELEASE = 13
SCALE = 14
POLLED = 40
HALT = 16
SWEEP = 17
STAND = 18
LET_GO = 19
WAIT_FOR_LATE = 20
REPORT_WRITTEN = 21
PAUSE = 22
CATCH_UP = 23
SUM_UP = 24
FLYING = 25
POSITION = 26
COUNTED = 27
LOOK = 28
