"""When things happen: the event list, the work list and the pending notices (E1-E3)."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque

from sim.plane.interface import Notice, NoticeKind
from tests.oracle.parts import Event


class Agenda(ABC):
    """Time, what is due now (work) and later (events), and what has been reported but not yet returned (notices)."""

    def __init__(self, begin_ns):
        self.now = begin_ns
        self.work = deque()  # a channel: SEND, a task: TURN
        self.events = []
        self.notices = deque()
        self.reports = 0  # notices ever reported: tells a turn whether it reported one (T10)
        self.pushed = 0

    def append_work(self, item):
        """E2: first in, first out, every item at most once."""
        if item not in self.work:
            self.work.append(item)

    def wake(self, task):
        """TURN, unless the thread is in service, held or halted."""
        if not task.in_service and not task.held and not task.halted:
            self.append_work(task)

    def at(self, time, rank, kind, payload, order=None):
        """Put an event on the list; without an explicit order, equal times of a rank keep the order of calls."""
        self.pushed += 1
        event = Event(time, rank, self.pushed if order is None else order, kind, payload)
        heapq.heappush(self.events, event)
        return event

    def drop(self, event):
        self.events.remove(event)
        heapq.heapify(self.events)

    def report(self, kind, task, **fields):
        if not task.halted:  # P1
            self.reports += 1
            self.notices.append(Notice(self.now, kind, task.number, **fields))

    def drop_notices(self, tasks):
        """P1, P3: what these tasks reported and was not yet returned."""
        self.notices = deque(notice for notice in self.notices if notice.task not in tasks)

    @abstractmethod
    def run_work(self, item): ...

    @abstractmethod
    def run_event(self, event): ...

    def advance(self, until):
        """E3: pending notices first; then work before events, and nothing at `until` itself."""
        if self.notices:
            return self.notices.popleft()
        while self.now < until:
            if self.work:
                self.run_work(self.work.popleft())
            elif self.events and self.events[0].time < until:
                event = heapq.heappop(self.events)
                self.now = event.time
                self.run_event(event)
            else:
                self.now = until
            if self.notices:
                return self.notices.popleft()
        return Notice(self.now, NoticeKind.REACHED_TIME)
