"""The lab: recordings of our own recorder, and what is learned from them.  Importing it lets `sim.jobs` read them.

``python -m benchmarks.lab`` is `ckptsim` with that format, and with `calibrate`.
"""

from benchmarks.lab.quantities import LAB_QUANTITIES
from benchmarks.lab.recording import FORMAT, Recording, read, recording_of
from sim.jobs.reading import FORMATS
from sim.model.quantities import QUANTITIES

__all__ = ["Recording", "read"]

FORMATS[FORMAT] = recording_of
QUANTITIES.update({quantity.name: quantity for quantity in LAB_QUANTITIES})
