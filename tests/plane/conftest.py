"""Every rule of ``sim/plane/RULES.md`` is held against every engine; whatever a test built is checked for conservation at the end."""

import pytest

import sim.plane
from tests.oracle import oracle

ENGINES = [oracle, "interpreted", "compiled"]


@pytest.fixture(params=ENGINES, scope="session")
def engine(request):
    return request.param


@pytest.fixture
def build(engine):
    """Makes planes of the engine under test."""
    planes = []

    def make(spec):
        planes.append(sim.plane.build(spec, engine))
        return planes[-1]

    yield make
    for plane in planes:
        plane.check()
