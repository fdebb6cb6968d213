"""All sentences on the first run of a strategy."""

from __future__ import annotations

from collections.abc import Iterator

from sim.studies.remarks.checkpoints import file_sentences, limit_sentences, output_sentences, timed_out_sentence
from sim.studies.remarks.failures import failure_sentences, replayed_sentences
from sim.studies.remarks.load import late_result_sentences, peak_sentences, waiting_buffers
from sim.studies.replications import Replications


def run_sentences(runs: Replications) -> Iterator[str]:
    """Yield sentences on the first run of a strategy: output, replay, files, failures, load, limits and growth."""
    result = runs.results[0]
    sources = [vertex for vertex in runs.scenario.job.vertices if vertex.source]
    yield from output_sentences(runs)
    if runs.consequences.commits:
        yield from replayed_sentences(result)
    yield from timed_out_sentence(runs)
    yield from waiting_buffers(runs)
    yield from file_sentences(result)
    yield from failure_sentences(result)
    if result.recoveries.empty and any(vertex.source and len(vertex.source.rates) > 1 for vertex in sources):
        yield from peak_sentences(result.series, [vertex.name for vertex in sources])
        yield from late_result_sentences(result)
    yield from limit_sentences(result)
