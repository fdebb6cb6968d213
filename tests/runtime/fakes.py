"""A data plane that does what it is told: scripted notices, verbs written down.  For tests of what stands around a plane."""

from sim.plane.interface import Notice, NoticeKind
from sim.runtime.clock import TwoPlaneEnvironment


class FakePlane:
    """Reports `notices` at their times (rule E3); `input_bytes` is what a capture holds at the moment."""

    def __init__(self, notices=()):
        self.now = 0
        self.upcoming = list(notices)
        self.advances = []  # every `until`
        self.verbs = []
        self.input_bytes = 0

    def advance(self, until):
        self.advances.append(until)
        if self.upcoming and self.upcoming[0].time < until:
            self.now = self.upcoming[0].time
            return self.upcoming.pop(0)
        self.now = until
        return Notice(until, NoticeKind.REACHED_TIME)

    def captured(self, task):
        return self.input_bytes

    def __getattr__(self, verb):
        return lambda *arguments: self.verbs.append((verb, *arguments))


def clock(*notices, on_notice=lambda _: None, begin_ns=0):
    return TwoPlaneEnvironment(FakePlane(notices), on_notice, begin_ns)
