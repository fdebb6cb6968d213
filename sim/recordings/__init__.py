"""Readers of real Flink jobs: recordings, the REST API, logs.  `source/` -> `infer/` -> `observe/`.

The commands `import`, `advise`, `explain` and `validate` call it.  It knows scenarios, and no prediction.
"""

from sim.recordings.infer.draft import Inference
from sim.recordings.infer.scenario import infer_scenario
from sim.recordings.observe.measured import Measured, compared, to_recording
from sim.recordings.observe.table import observed
from sim.recordings.reading import read_any, read_source
from sim.recordings.scenarios import infer, to_document
from sim.recordings.source.files import RecordingError
from sim.recordings.source.job_log import JobLog
from sim.recordings.source.recorded_job import ConfiguredJob, Import, RecordedJob
from sim.recordings.source.rest.fetching import fetch
from sim.recordings.source.rest.saved import read_saved, save
from sim.recordings.source.rest.snapshot import RestSnapshot

__all__ = [
    "ConfiguredJob", "Import", "Inference", "JobLog", "Measured", "RecordedJob", "RecordingError", "RestSnapshot", "compared", "fetch",
    "infer", "infer_scenario", "observed", "read_any", "read_saved", "read_source", "save", "to_document", "to_recording",
]  # fmt: skip
