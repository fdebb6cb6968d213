"""Readers of the outside world: recordings of real Flink jobs, and what their own REST API tells.  What was predicted for them is
calibration's business.
"""

from sim.recordings.draft import Inference
from sim.recordings.infer import infer_scenario
from sim.recordings.measured import Measured, compared
from sim.recordings.observed import observed
from sim.recordings.reader import RecordingError, read
from sim.recordings.recording import Recording
from sim.recordings.rest import fetch
from sim.recordings.rest_recording import to_recording
from sim.recordings.saved import read_saved, save
from sim.recordings.snapshot import Snapshot
from sim.recordings.sources import infer, read_any, read_source, to_document
from sim.recordings.to_scenario import Import

__all__ = [
    "Import", "Inference", "Measured", "Recording", "RecordingError", "Snapshot", "compared", "fetch", "infer", "infer_scenario",
    "observed", "read", "read_any", "read_saved", "read_source", "save", "to_document", "to_recording",
]  # fmt: skip
