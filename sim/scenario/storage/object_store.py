"""`object-store:` of `storage:` as it is written and as the model has it."""

from __future__ import annotations

from pathlib import Path

from sim.model import storage as model
from sim.scenario.grammar.options import Options, built
from sim.scenario.storage.page import StoragePage
from sim.scenario.storage.slow_places import SlowPlacesField, build_slow
from sim.scenario.text.problems import DocumentPath, Reading


class ObjectStore(Options, of=(model.ObjectStore,)):
    """S3 and its kin: an object is there when it is closed, large ones go in parts, requests are limited."""

    slow: SlowPlacesField | None = None


def build_object_store(given: ObjectStore, reading: Reading, folder: Path) -> model.ObjectStore:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "object-store")
    return built(model.ObjectStore, given, here, reading, slow=build_slow(given.slow, (*here, "slow"), reading, folder))


OBJECT_STORE = StoragePage(
    "object-store", ObjectStore, build_object_store, {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"}
)
