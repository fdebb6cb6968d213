"""A bug as a record: one function of the running package is replaced, and a small scenario goes where it is called.

The checkers are not read for these records: what they look at must not decide what is broken here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sim.model.schema.text import write
from sim.runtime.simulate import simulate
from tests.oracle import oracle
from tests.places import DATA
from tests.scenarios import read_scenario
from tests.worlds.draw import Document
from tests.worlds.trial import broken_promises, limited_cpu

Function = Callable[..., Any]
MOST_CPU_S = 30
"""A broken program may run for ever: that is noticed as well."""


@dataclass(slots=True)
class Called:
    """Whether a run has called the function that is broken."""

    yes: bool = False


@dataclass(frozen=True, slots=True)
class Injection:
    """A bug.  `change` takes the function `owner.attribute` and returns the broken one."""

    part: str
    name: str
    owner: Any  # a class or a module
    attribute: str
    change: Callable[[Function], Function]
    world: Document  # the least one that shows it
    reference: bool

    @contextmanager
    def applied(self, *, broken=True):
        """Inside, the function is broken; otherwise it is only watched whether it is called."""
        called, original = Called(), self.owner.__dict__[self.attribute]
        kind = type(original) if isinstance(original, property | classmethod) else None
        function = original.fget if isinstance(original, property) else original.__func__ if kind else original
        new = self.change(function) if broken else function

        def replacement(*args, **kwargs):
            called.yes = True
            return new(*args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.owner, self.attribute, kind(replacement) if kind else replacement)
            yield called

    def verdict(self, world):
        """What the checkers say of a world that runs on the broken package."""
        with self.applied():
            return verdict(world, reference=self.reference)


class Injections(list[Injection]):
    """The bugs of one part.  `reference`: they break the plane that can be read, not the compiled one."""

    def __init__(self, part, *, reference=False):
        super().__init__()
        self.part = part
        self.reference = reference

    def record(self, name, owner, attribute, world, change):
        self.append(Injection(self.part, name, owner, attribute, change, world, self.reference))

    def add(self, owner, attribute, world):
        """Decorate the change of one function; its name is the name of the bug, and its docstring says what is wrong."""

        def added(change):
            self.record(change.__name__.replace("_", " "), owner, attribute, world, change)
            return change

        return added


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run is accused of; `kind`: empty if of nothing."""

    kind: str = ""  # violated, error, hangs, or outdated: the bug does not fit the package any more
    message: str = ""

    @property
    def noticed(self):
        return self.kind not in ("", "outdated")


def verdict(world, *, reference=False):
    """Run a world as a user's scenario, with its checks."""
    return ran(world, reference=reference)[0]


def ran(world, *, reference=False, most_cpu_s=MOST_CPU_S):
    """The verdict, and the result; None: there is none."""
    scenario = read_scenario(write(world, "A world."), folder=DATA / "worlds")
    try:
        with limited_cpu(most_cpu_s):
            result = simulate(scenario, engine=oracle if reference else "compiled")
    except TimeoutError as error:
        return Verdict("hangs", str(error)), None
    except Exception as error:  # noqa: BLE001  # whatever a broken program raises
        kind = "outdated" if isinstance(error, AttributeError | TypeError) else "error"
        return Verdict(kind, f"{type(error).__name__}: {error}".splitlines()[0]), None
    return judged(result), result


def judged(result):
    found = broken_promises(result)
    return Verdict("violated", str(found[0]).splitlines()[0]) if found else Verdict()
