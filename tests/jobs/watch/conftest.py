"""A JobManager that plays a script: checkpoints, load and state through time, by a clock that does not wait."""

import copy

import pytest

from sim.app.verbs.common import Listener
from sim.app.verbs.watch import WatchClock, watch
from sim.jobs.source.rest_answers import is_id
from tests.conftest import FakeFlink
from tests.places import REST

S = 1000  # ms


class PlayedClock(WatchClock):
    """A clock that passes when it is waited for; `then` is called after each wait."""

    def __init__(self, now_ms):
        self.ms, self.then = now_ms, lambda _seconds: None

    def now_ms(self):
        return round(self.ms)

    def wait(self, seconds):
        self.ms += 1e3 * seconds
        self.then(seconds)


class PlayedFlink(FakeFlink):
    """A saved job, which goes on after it was saved.  A script is (seconds since then) -> a factor.

    `slower`: of the durations of checkpoints; `load`: of the records per second; `larger`: of the state.  `fails`: numbers of checkpoints
    that fail, and why.
    """

    def __init__(self, name="keeping-up"):
        super().__init__(REST / f"{name}.zip")
        self.first = f"/jobs/{self.job}"
        self.about = self.answers[self.first]
        self.begun_ms = self.about["now"]
        self.clock = PlayedClock(self.begun_ms)
        self.interval_ms = self.answers[f"{self.first}/checkpoints/config"]["interval"]
        self.slower = self.load = self.larger = lambda _s: 1.0
        self.fails, self.restored, self.failures_ms = {}, 0, []
        history = self.answers[f"{self.first}/checkpoints"]["history"]
        self.last = max(point["id"] for point in history)
        self.templates = {point["id"]: point for point in history}

    @property
    def passed_s(self):
        return (self.clock.ms - self.begun_ms) / 1e3

    def grown(self):
        """How many times the records of before: the load summed up, second by second."""
        before_s = (self.begun_ms - self.about["start-time"]) / 1e3
        return (before_s + sum(self.load(second) for second in range(int(self.passed_s)))) / before_s

    def trigger_ms(self, number):
        return self.begun_ms + (number - self.last) * self.interval_ms

    def drawn(self, number):
        """(trigger, duration, factor of the state) of a checkpoint."""
        at_s = (self.trigger_ms(number) - self.begun_ms) / 1e3
        usual = self.templates[self.last - number % len(self.templates)]
        return self.trigger_ms(number), usual, self.slower(at_s), self.larger(at_s)

    def numbers(self):
        """Checkpoints that have ended since the job was saved."""
        latest = self.last + int(self.passed_s * 1e3 // self.interval_ms)
        return [n for n in range(max(self.last + 1, latest - 40), latest + 1) if self.ended_ms(n) <= self.clock.ms]

    def ended_ms(self, number):
        at_ms, usual, slower, _ = self.drawn(number)
        return at_ms + slower * usual["end_to_end_duration"]

    def what_is_at(self, path, names):
        if path == self.first:
            return self.counted(self.about) | {"now": self.clock.now_ms()}
        if path == f"{self.first}/checkpoints":
            found = copy.deepcopy(self.answers[path])
            new = [self.listed(number) for number in reversed(self.numbers())]
            found["history"] = (new + found["history"])[:10]
            found["counts"]["restored"] = self.restored
            return found
        if path == f"{self.first}/exceptions":
            entries = [{"timestamp": at, "exceptionName": "java.lang.Exception"} for at in self.failures_ms]
            return {"exceptionHistory": {"entries": entries}}
        if path.startswith(f"{self.first}/checkpoints/details/"):
            number, _, rest = path.removeprefix(f"{self.first}/checkpoints/details/").partition("/")
            if int(number) > self.last:
                return self.details(int(number), rest)
        if path.startswith(f"{self.first}/vertices/") and is_id(path.rpartition("/")[2]):
            return self.counted(self.answers.get(path))
        return super().what_is_at(path, names)

    def counted(self, answer):
        factor = self.grown()

        def walk(value, key=""):
            if isinstance(value, dict):
                return {name: walk(item, name) for name, item in value.items()}
            if isinstance(value, list):
                return [walk(item) for item in value]
            counts = (
                key.startswith(("read-", "write-", "accumulated-"))
                and isinstance(value, (int, float))
                and not isinstance(value, bool)
            )
            return value * factor if counts else value

        return walk(answer)

    def listed(self, number):
        at_ms, usual, slower, larger = self.drawn(number)
        point = copy.deepcopy(usual) | {"id": number}
        self.move(point, usual["trigger_timestamp"], at_ms, slower, larger)
        if number in self.fails:
            point |= {"status": "FAILED", "failure_message": self.fails[number]}
        return point

    def details(self, number, rest):
        at_ms, usual, slower, larger = self.drawn(number)
        template = self.answers.get(f"{self.first}/checkpoints/details/{usual['id']}{f'/{rest}' if rest else ''}")
        if template is None:
            return None
        found = copy.deepcopy(template) | {"id": number}
        self.move(found, usual["trigger_timestamp"], at_ms, slower, larger)
        if number in self.fails:
            found |= {"status": "FAILED", "failure_message": self.fails[number]}
        return found

    def move(self, value, from_ms, to_ms, slower, larger):
        """Durations and sizes grow, times go along."""
        durations = ("duration", "end_to_end_duration", "sync", "async", "start_delay")
        sizes = ("state_size", "checkpointed_size")
        for key, item in value.items():
            if isinstance(item, dict):
                self.move(item, from_ms, to_ms, slower, larger)
            elif isinstance(item, list):
                for inner in item:
                    self.move(inner, from_ms, to_ms, slower, larger)
            elif isinstance(item, int) and key in durations:
                value[key] = round(item * slower)
            elif isinstance(item, int) and key in sizes:
                value[key] = round(item * larger)
            elif isinstance(item, int) and key.endswith("timestamp") and item > 0:
                value[key] = round(to_ms + slower * (item - from_ms))


class Heard(Listener):
    """What a watch said."""

    def __init__(self):
        self.events, self.messages = [], []

    def message(self, text):
        self.messages.append(text)

    def result(self, result):
        self.events.append(result)

    def kinds(self):
        return [event.kind for event in self.events]

    def of(self, kind):
        return [event.text for event in self.events if event.kind == kind]


@pytest.fixture
def play():
    """``play("pressed")``: a played JobManager, and of it `watched(folder, "5 min", ...)`: what a watch of it said."""
    started = []

    def start(name="keeping-up"):
        fake = PlayedFlink(name)

        def watched(folder, duration, heard=None, **options):
            heard = heard or Heard()
            given = {"every": "30 s", "sample": "0 s"} | options
            heard.done = watch(fake.url, folder=folder, duration=duration, listener=heard, clock=fake.clock, **given)
            return heard

        fake.watched = watched
        started.append(fake)
        return fake

    yield start
    for fake in started:
        fake.server.shutdown()
        fake.server.server_close()


@pytest.fixture
def played(play):
    return play()
