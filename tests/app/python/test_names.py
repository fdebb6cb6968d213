"""What `import sim` offers, and nothing else."""

import inspect

import pytest

import sim
from tests.processes import run_python


def test_only_public_names_are_offered():
    """Rooms that were loaded on the way are none of them."""
    code = "import sim; sim.load; print(*dir(sim))"

    offered = run_python("-c", code, check=True).stdout.split()

    assert sorted([*sim.__all__, "__version__"]) == offered


@pytest.mark.parametrize("name", sim.__all__)
def test_every_name_is_documented_and_typed(name):
    found = getattr(sim, name)

    assert found.__doc__
    if inspect.isfunction(found):
        assert "return" in found.__annotations__
        parameters = inspect.signature(found).parameters.values()
        assert [known.name for known in parameters if known.annotation is known.empty] == []
        assert [known.name for known in parameters if known.kind is known.VAR_KEYWORD] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'run_sweep'"):
        sim.run_sweep  # noqa: B018
