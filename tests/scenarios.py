"""The one scenario of a text, and its run."""

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate


def read_scenario(text, *name, **options):
    (scenario,) = loads(text, *name, **options).scenarios
    return scenario


def run_scenario(text, overrides=(), **options):
    return simulate(read_scenario(text, overrides=overrides), **options)
