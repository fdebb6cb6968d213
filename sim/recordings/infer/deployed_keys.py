"""What a file of Flink's configuration adds to an import: keys that the answers, or the log, of the job do not tell.

The job that runs tells what is in force.  A file may be newer, or of another job: where both say a value, that of the job counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sim.recordings.infer.draft import MARK, Inference
from sim.recordings.infer.options import TOLD_ELSEWHERE
from sim.recordings.source.job_log import JobLog
from sim.recordings.source.rest.job import RestJob
from sim.recordings.source.rest.snapshot import RestSnapshot
from sim.scenario.flink.file import FlinkFile
from sim.scenario.flink.keys import current_names, modelled_keys
from sim.scenario.text.problems import DocumentPath

_OF_GRAPH = frozenset({"parallelism.default", "pipeline.max-parallelism"})
_RESTART = "restart-strategy."


def with_flink_file(draft: Inference, file: FlinkFile, source: RestSnapshot | JobLog) -> Inference:
    """The inference with the keys of a file that its source does not tell, each with its place in the file."""
    names, modelled, told = current_names(), modelled_keys(), _told(source)
    flink = dict(draft.document.get("flink", {}))
    in_force = {names.get(key, key) for key in flink}
    found = Inference(draft.document | {"flink": flink}, draft.question, dict(draft.comments), draft.inferred, *_lists(draft))
    for written, (value, mark) in file.keys.items():
        key = names.get(written, written)
        has_strategy = key.startswith(_RESTART) and _RESTART + "type" in in_force
        if key in modelled and value is not None and key not in told | in_force and not has_strategy:
            path = modelled[key].path
            if not _is_measured(found, path) and not (path == ("cluster", "slots") and _is_measured(found, ("cluster", "placement"))):
                found = _without(found, path)
                found.document["flink"][key] = value
                found.comments[f"flink.{key}"] = f"{mark.file}:{mark.line}"
    for path, (value, mark) in file.beside.items():
        if not _is_measured(found, path):
            found = _without(found, path)
            found.document[path[0]] = {**found.document.get(path[0], {}), path[1]: value}
            found.comments[".".join(path)] = f"{mark.file}:{mark.line}"
    if not flink:
        del found.document["flink"]
    return replace(found, inferred=found.inferred + len(flink) - len(in_force))


def _told(source: RestSnapshot | JobLog) -> frozenset[str]:
    """Keys whose values in force the source tells, or are in no place of an import."""
    if isinstance(source, JobLog):
        return _OF_GRAPH
    if RestJob(source).checkpoint_config is not None:
        return TOLD_ELSEWHERE - {"taskmanager.numberOfTaskSlots"}
    return _OF_GRAPH


def _lists(draft: Inference) -> Iterator[tuple[str, ...]]:
    yield from (draft.unknown, draft.not_modelled, draft.unbalanced, draft.scarce)


def _is_measured(draft: Inference, path: DocumentPath) -> bool:
    """Whether the source tells this value: it is there, and is not asked for."""
    place: Any = draft.document
    for step in path:
        if not isinstance(place, dict) or step not in place:
            return False
        place = place[step]
    return not _asked(draft, path)


def _asked(draft: Inference, path: DocumentPath) -> str:
    """The comment that asks for a value; empty: none does."""
    comment = " ".join(draft.comments.get(".".join(map(str, path)), "").split())
    return comment if comment.startswith(MARK) else ""


def _without(draft: Inference, path: DocumentPath) -> Inference:
    """The draft without a value that it only assumed, and without the question for it."""
    if not (comment := _asked(draft, path)):
        return draft
    section, name = str(path[0]), path[1]
    rest = {key: value for key, value in draft.document[section].items() if key != name}
    document = {key: rest if key == section else value for key, value in draft.document.items() if key != section or rest}
    comments = {key: text for key, text in draft.comments.items() if key != f"{section}.{name}"}
    unknown = tuple(question for question in draft.unknown if f"{MARK}: {question} " not in comment)
    return replace(draft, document=document, comments=comments, unknown=unknown)
