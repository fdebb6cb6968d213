"""Readers of the outside world: recordings of real Flink jobs.  What was predicted for them is calibration's business."""

from sim.recordings.observed import observed
from sim.recordings.reader import RecordingError, read
from sim.recordings.recording import Recording
from sim.recordings.to_scenario import Import, to_document

__all__ = ["Import", "Recording", "RecordingError", "observed", "read", "to_document"]
