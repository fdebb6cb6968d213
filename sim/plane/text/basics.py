"""Basics of the kernel: constants, random numbers, digests, the event tree, the work list, notices, and elements of queues."""

from sim.plane.interface import (
    FIRST_UNGROUPED_SERIES,
    MAX_SERIES,
    MAX_TRACKED_CHECKPOINTS,
    NoticeKind,
    Ship,
    ThreadState,
    Trait,
    Wait,
)
from sim.plane.rows import PlaneState

# ---- Constants of the kernel: plain integers, equal to the interface's enumerations where those exist.

IDLE, BUSY, SOFT, HARD, HELD, HALTED = map(int, ThreadState)
MAILBOX, POLL, LOCK = map(int, Wait)
PRIORITY, BLOCKING, ANNOUNCED, FINAL = (int(trait) for trait in Trait if trait)

REBALANCE = int(Ship.REBALANCE)
HASH = int(Ship.HASH)
RESCALE = int(Ship.RESCALE)
BROADCAST = int(Ship.BROADCAST)

(
    NOTE_QUIET,
    NOTE_ARRIVED,
    NOTE_ANNOUNCED,
    NOTE_SAFE,
    NOTE_LEFT,
    NOTE_EXHAUSTED,
    NOTE_RECOVERED,
    NOTE_NONE_LATE,
    NOTE_WRITTEN,
) = map(int, NoticeKind)
NOTE_WORDS = 9  # the fields of a notice

MARKER_SERIES = 0  # the one that bounds captures (the interface's BARRIERS)
SERIES = MAX_SERIES
COUNTS = MAX_TRACKED_CHECKPOINTS
ONE_BY_ONE = FIRST_UNGROUPED_SERIES
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
RESETTING = 2  # `held` of a task whose rows are being reset for a restart
SEGMENT = 5  # words of a rate segment: first record, start, num, den // num, den % num
VERTEX_SUMS = 6  # the interface's VERTEX_COLUMNS
EDGE_SUMS = 4  # the interface's EDGE_COLUMNS
TIMED = 1  # `lag` of a task
UNTIMED = 2
FIRING = 2  # `serving` of a task
MAX_RECORDS_AHEAD = (
    64  # a task serves at most so many records ahead of its time; undoing them costs about one operation
)
PREFETCHED_COPIES = 4  # a task that serves ahead prefetches the channels of so many further copies
MASK31 = 0x7FFFFFFF
MASK32 = 0xFFFFFFFF


# ---- Numbers out of streams: the restricted twin of ``sim.model.randomness``, quantile tables (W2), digests (G1), an exact product.
#
# Every intermediate value stays below 2**63: the compiled integers wrap, the interpreted ones would not.


def draw(stride: int, offset: int, k: int) -> int:
    """Return the k-th uniform 32-bit integer of a stream."""
    x = ((k & MASK32) * stride + offset) & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def fold(digest: int, x: int) -> int:
    """Return the digest after adding the number x (G1)."""
    return (((digest ^ (x & MASK31)) * 48271) + ((x >> 31) & MASK31)) & MASK31


def scaled(a: int, b: int, c: int) -> int:
    """Return ``a * b // c`` for non-negative a, b < 2**61 and 0 < c < 2**61, at most 2**31 - 1.

    The product may exceed 63 bits, so this is a long division, bit by bit.
    """
    multiple = a // c
    part = a - multiple * c
    quotient = 0
    rest = 0
    for i in range(61):
        bit = (b >> (60 - i)) & 1
        quotient = quotient * 2
        rest = rest * 2
        if bit == 1:
            quotient += multiple
            rest += part
        while rest >= c:
            rest -= c
            quotient += 1
        if quotient > MASK31:
            quotient = MASK31
    return quotient


class Basics(PlaneState):
    """The event tree, the work list, notices, the states of threads, and elements of queues."""

    __slots__ = ()

    def quantile(self, table: int, n: int, stride: int, offset: int, k: int) -> int:
        """Return the k-th value of a quantile table of n entries.  A table with one entry is a constant."""
        if n == 1:
            return self.words[table]
        return self.words[table + ((draw(stride, offset, k) * n) >> 32)]

    def record_size(self, c: int, table: int, n: int, k: int) -> int:
        """Return the size of the k-th record of a channel [bytes].  It is drawn only if the table has several sizes."""
        if n == 1:
            return self.words[table]
        ch = self.channels[c]
        return self.quantile(table, n, ch.stride, ch.offset, k)

    # ---- Which event is next (E1): a tournament tree over one leaf per rank.
    #
    # A leaf holds the packed key ``time << shift | rank``, so the smallest key is the next event and ties fall by
    # rank.  An inner node holds the smaller of its two children.  Two tasks, no NIC (`leaf0` = 8, `shift` = 3):
    #
    #   tree[1]                                 1600                              next event: time 200, rank 0
    #   tree[2..3]                1600                        4004
    #   tree[4..5]         1600          NEVER         4004          NEVER        (tree[4..7])
    #   tree[8..15]    1600   2401   NEVER  NEVER   4004   NEVER  NEVER  NEVER
    #   rank             0      1      2      3      4       5     unused
    #                  task   task   reverse forward flush debloat
    #                                line    line    timer timer
    #
    # Each rank has at most one pending event, which makes its leaf a fixed place: rescheduling overwrites it,
    # cancelling writes NEVER, and either plays one match per level up to the root.  A binary heap has no fixed
    # place for a rank; the oracle uses one, and has to search its list and build the heap again to drop an event
    # (tests/oracle/agenda.py).
    #
    # The leaf of a task whose event has just happened stays as it is (`g.stale`) until its next service
    # overwrites it, or until the next event is wanted.  This saves one pass to the root.

    def set_leaf(self, rank: int, key: int) -> None:
        """Set the leaf of a rank, and update the smaller keys on the path to the root."""
        tree = self.tree
        i = self.g.leaf0 + rank
        tree[i] = key
        while i > 1:
            other = tree[i ^ 1]
            if other < key:
                key = other
            i >>= 1
            tree[i] = key

    def schedule(self, rank: int, time: int) -> None:
        """Schedule the event of a rank at `time`.  It replaces the rank's earlier event, if any."""
        g = self.g
        if time > g.horizon:
            time = g.horizon
        if g.stale == rank:
            g.stale = -1
        self.set_leaf(rank, (time << g.shift) | rank)

    def cancel(self, rank: int) -> None:
        """Cancel the event of a rank."""
        self.set_leaf(rank, NEVER)

    # ---- The work list (E2), pending notices (E3), and what a task's thread is doing (T12).

    def append_work(self, item: int) -> None:
        """Append an item to the work list: TURN t is t, SEND c is tasks + c."""
        g = self.g
        self.ring[(g.work_head + g.work_n) & g.work_mask] = item
        g.work_n += 1

    def append_turn(self, t: int) -> None:
        """Append TURN t, unless it is on the work list already."""
        task = self.tasks[t]
        if task.listed == 0:
            task.listed = 1
            self.append_work(t)

    def wake(self, t: int) -> None:
        """Append TURN t, unless the task is in service or held."""
        task = self.tasks[t]
        if task.serving == 0 and task.held == 0:
            self.append_turn(t)

    def wake_between_records(self, t: int) -> None:
        """Wake a task that is not within a record.  Priority markers and interruptions do not wait for output."""
        state = self.tasks[t].state
        if state == IDLE or state == SOFT:
            self.wake(t)

    def report(
        self, kind: int, task: int, gate: int, series: int, number: int, channel: int, first: int, last: int
    ) -> None:
        """Add a notice with the fields of the interface's `Notice`.  Notices of halted tasks are ignored (P1)."""
        if self.tasks[task].state == HALTED:
            return
        i = self.g.noted * NOTE_WORDS
        notes = self.notes
        notes[i] = self.g.now
        notes[i + 1] = kind
        notes[i + 2] = task
        notes[i + 3] = gate
        notes[i + 4] = series
        notes[i + 5] = number
        notes[i + 6] = channel
        notes[i + 7] = first
        notes[i + 8] = last
        self.g.noted += 1

    def report_task(self, kind: int, t: int, number: int) -> None:
        """Add a notice about a task as a whole.  `number` is that of a marker, or -1."""
        self.report(kind, t, -1, -1, number, -1, 0, 0)

    def report_safe(self, t: int) -> None:
        """Report that an interrupted task is between records (E4)."""
        self.tasks[t].interrupted = 0
        self.tasks[t].behind = 0
        self.report_task(NOTE_SAFE, t, -1)

    def become(self, t: int, state: int) -> None:
        """Set the state of a task's thread, from the current time on."""
        self.enter(t, state, self.g.now)

    def enter(self, t: int, state: int, now: int) -> None:
        """Set the state of a task's thread from `now` on."""
        task = self.tasks[t]
        if task.state != state:
            self.count_time(t, now)
            task.state = state
            if self.g.digests == 1:
                task.digest = fold(fold(task.digest, now), state)

    def count_time(self, t: int, now: int) -> None:
        """Add the time since it was last counted to the time of a task's thread in its state."""
        task = self.tasks[t]
        ns = now - task.since
        if task.state == BUSY or task.state == HELD:
            task.busy_ns += ns
        elif task.state == IDLE:
            task.idle_ns += ns
        elif task.state == SOFT:
            task.soft_ns += ns
        elif task.state == HARD:
            task.hard_ns += ns
        task.since = now

    def fold_channel(self, c: int, end: int, length: int) -> None:
        """Add the sending, arrival or taking of a data element to the digest of its channel (G1)."""
        ch = self.channels[c]
        ch.digest = fold(fold(fold(ch.digest, self.g.now), end), length)

    # ---- Buffers, markers and messages as linked elements out of one pool, and the sender's queue made of them.
    #
    # The pool is bounded by segments and credits; the markers in it are counted, so that the owner of the pool can make
    # room before a verb adds more.

    def fetch(self, c: int) -> None:
        """Prefetch the hot cache lines of channel c.  The interpreter does nothing."""
        return

    def new_element(self, c: int, kind: int) -> int:
        """Take an element from the pool for channel c, and return its number."""
        g = self.g
        e = g.free
        if e >= 0:
            g.free = self.elements[e].next
        else:
            e = g.fresh
            g.fresh += 1
        element = self.elements[e]
        element.next = -1
        element.channel = c
        element.kind = kind
        return e

    def free_element(self, e: int) -> None:
        """Return an element to the pool."""
        self.elements[e].next = self.g.free
        self.g.free = e

    def new_marker(self, c: int, series: int, number: int, traits: int) -> int:
        """Take an element from the pool for a marker of channel c, and return its number."""
        e = self.new_element(c, series)
        element = self.elements[e]
        element.number = number
        element.traits = traits
        self.g.markers += 1
        return e

    def free_marker(self, e: int) -> None:
        """Return the element of a marker or a watch to the pool."""
        self.free_element(e)
        self.g.markers -= 1

    def append_element(self, c: int, e: int) -> None:
        """Append an element to the sender's queue."""
        ch = self.channels[c]
        if ch.head < 0:
            ch.head = e
        else:
            self.elements[ch.tail].next = e
        ch.tail = e
        ch.queued += 1

    def remove_after(self, c: int, before: int, e: int) -> None:
        """Remove element e from the sender's queue.  `before` is the previous element, or -1 if e is the head."""
        ch = self.channels[c]
        after = self.elements[e].next
        if before < 0:
            ch.head = after
        else:
            self.elements[before].next = after
        if after < 0:
            ch.tail = before
        self.elements[e].next = -1
        ch.queued -= 1

    def take_head(self, c: int) -> int:
        """Remove and return the head of the sender's queue.  If the queue is empty then, its flush is done (S2)."""
        ch = self.channels[c]
        e = ch.head
        self.remove_after(c, -1, e)
        if ch.queued == 0:
            ch.flush = 0
        return e

    def insert_priority(self, c: int, e: int) -> None:
        """Insert a priority marker before all ordinary elements and after earlier priority markers (M1)."""
        ch = self.channels[c]
        before = -1
        i = ch.head
        while i >= 0 and self.is_priority(i):
            before = i
            i = self.elements[i].next
        self.elements[e].next = i
        if before < 0:
            ch.head = e
        else:
            self.elements[before].next = e
        if i < 0:
            ch.tail = e
        ch.queued += 1

    def is_priority(self, e: int) -> bool:
        """Return whether an element is a priority marker."""
        return self.elements[e].kind >= 0 and (self.elements[e].traits & PRIORITY) != 0

    def append_urgent(self, t: int, e: int) -> None:
        """Append a marker to the list of priority markers that the task processes before data."""
        task = self.tasks[t]
        self.elements[e].next = -1
        if task.urgent_head < 0:
            task.urgent_head = e
        else:
            self.elements[task.urgent_tail].next = e
        task.urgent_tail = e
