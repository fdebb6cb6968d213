"""Parser of files with Flink's configuration: flink-conf.yaml, config.yaml (flat or nested), and Kubernetes manifests.

The keys of Flink are read from different places:

    flink-conf.yaml, config.yaml       the whole file
    FlinkDeployment, FlinkSessionJob   spec.flinkConfiguration, flat or nested; version, parallelism and resources in spec
    a patch for `kubectl patch`        the same, without apiVersion and kind
    a scenario                         flink:

`sim.model.schema.flink_block` moves the values into a scenario.  Advice is written as a patch of the file, with the key names
that the file uses.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Any

from sim.model.frozen import frozen
from sim.model.schema.flink_keys import INTERVAL, about_key, current_names, is_flink_key
from sim.model.schema.text import (
    DocumentPath,
    Mapping,
    Mark,
    Problem,
    Reading,
    ScenarioError,
    compose,
    read_referenced_text,
    value_at,
)
from sim.model.text import one_line

FILE = "flink-file"
"""The key of a scenario that names such a file."""
_KINDS = ("FlinkSessionJob", "FlinkBlueGreenDeployment", "FlinkDeployment")
"""The kinds that hold a configuration.  The first of them in a file is read: a session's jobs add to its deployment."""
_CONFIGURATION = "flinkConfiguration"
_NOT_MODELLED = (  # taskManager.resource.cpu is modelled if it is a whole number: see _add_spec
    "job.upgradeMode",
    "jobManager.resource.cpu",
    "jobManager.resource.memory",
    "taskManager.resource.cpu",
    "taskManager.resource.memory",
)
_OTHER_PARTS = re.compile(r"podTemplate|logConfiguration|ingress|metadata|image")
"""Parts of a manifest that say nothing about Flink's configuration: what is odd there is Kubernetes' business."""


@frozen
class FlinkFile:
    """A file of Flink's configuration.  Places of values are lines and columns of its text."""

    file: str
    text: str
    kind: str = ""  # kind of the Kubernetes resource; "" if the file is not a manifest
    resource: str = ""  # name of the Kubernetes resource; "" if it has none
    keys: dict[str, tuple[Any, Mark]] = field(default_factory=dict)  # dotted key -> value and its position
    # other fields of a manifest: field -> path of the option that it sets, value and its position
    derived: dict[str, tuple[tuple[str, ...], Any, Mark]] = field(default_factory=dict)
    block: DocumentPath = ()  # path of the mapping with Flink's keys; () for the whole document
    marks: dict[DocumentPath, Mark] = field(default_factory=dict)  # path in the document -> position
    ignored: list[Problem] = field(default_factory=list)  # without effect

    @property
    def is_patch(self) -> bool:
        """Return whether the file is a JSON merge patch, in which null removes a key (RFC 7396)."""
        return self.kind == "FlinkDeployment" and not self.resource

    def children(self, path: DocumentPath) -> list[Mark]:
        """Return the positions of the keys directly below a path."""
        return [mark for place, mark in self.marks.items() if place[:-1] == path and place]

    def written(self, key: str) -> str:
        """Return the name that the file uses for a key, which may be an older one; `key` itself if the file lacks the key."""
        names = current_names()
        return next((name for name in self.keys if names.get(name, name) == names.get(key, key)), key)

    def place_of(self, key: str) -> DocumentPath:
        """Return the path at which the document has a key, or at which a new key is to be inserted.

        An existing key may have an older name.  If the manifest sets the parallelism only in `spec.job.parallelism`, this
        is the path of `parallelism.default`.  A new key is inserted in the innermost existing section that is a prefix of it.
        """
        names = {
            path: ".".join(map(str, path[len(self.block) :]))
            for path in self.marks
            if path[: len(self.block)] == self.block
        }
        if (written := self.written(key)) in names.values():
            return next(path for path, name in names.items() if name == written and not self.children(path))
        parallelism = (*self.block[:-1], "job", "parallelism")
        if key == "parallelism.default" and self.block and parallelism in self.marks:
            return parallelism
        sections = [path for path, name in names.items() if key.startswith(f"{name}.") and name not in self.keys]
        nearest = max((path for path in sections if self.children(path)), key=len, default=self.block)
        return (*nearest, key.removeprefix(f"{names[nearest]}.") if len(nearest) > len(self.block) else key)


def flink_change(file: str | Path, scenario: Path) -> str:
    """Return the override ``flink-file="PATH"`` of a scenario, with the path of the file relative to the scenario's folder."""
    return f"{FILE}={json.dumps(os.path.relpath(file, scenario.parent))}"


def read_flink_file(file: Path) -> FlinkFile:
    """Read a file with Flink's configuration, or with ``FILE#NAME`` the resource NAME of a manifest.

    A file whose own name contains ``#NAME`` has precedence.  Raises `ScenarioError` with one problem.
    """
    path, sharp, name = str(file).rpartition("#")
    if not sharp or file.exists():
        path, name = str(file), ""
    return parse_flink_file(read_referenced_text(Path(path)), path, name)


def parse_flink_file(text: str, file: str, name: str = "") -> FlinkFile:
    """Parse a text with Flink's configuration; `file` is its name in messages.

    `name` selects a resource of a manifest; with "", there must be only one.  Raises `ScenarioError` with one problem.
    """
    documents = list(_documents(text, file))
    for plain, _ in documents:
        if isinstance(value_at(plain, ("spec", _CONFIGURATION)), Mapping) and "kind" not in plain:
            plain |= {"kind": "FlinkDeployment", "apiVersion": ""}
    manifests = [(plain, reading) for plain, reading in documents if "kind" in plain and "apiVersion" in plain]
    if manifests:
        return _of_manifests(file, text, manifests, name)
    if len(documents) != 1:
        raise ScenarioError.of(
            file, f"{'holds several documents' if documents else 'is empty'}: expected the configuration of one Flink"
        )
    ((plain, reading),) = documents
    block: DocumentPath = ("flink",) if "job" in plain and isinstance(plain.get("flink"), Mapping) else ()
    keys = {key: (value, reading.marks[place]) for key, place, value in flat(value_at(plain, block), block)}
    if not any(is_flink_key(key) for key in keys):
        raise ScenarioError.of(
            file,
            "has no key of Flink: expected flink-conf.yaml, config.yaml, or a manifest of Kubernetes with one of them",
        )
    return FlinkFile(file, text, keys=keys, block=block, marks=reading.marks, ignored=list(reading.warnings))


IS_CONFIGURATION = (
    "holds a configuration of Flink and no job: `ckptsim run SCENARIO --flink FILE` and `ckptsim advise JOB --flink FILE` read it, and "
    "`ckptsim explain-key FILE` says what each of its keys sets"
)


def is_configuration(plain: Any) -> bool:
    """Return whether a parsed document is or contains a configuration of Flink, and is not a scenario."""
    if not isinstance(plain, Mapping) or {"job", "version", "checkpoint"} & set(plain):
        return False
    return plain.get("kind") in _KINDS or any(is_flink_key(key) for key, _, _ in flat(plain, ()))


def about_file(read: FlinkFile) -> dict[str, str]:
    """Return {key of a file: text on what it sets}.

    If a configuration of Flink does not set the checkpoint interval, the result has an entry that says so.
    """
    about, names = {key: about_key(key) for key in read.keys}, current_names()
    about |= {name: f"sets {'.'.join(path)}" for name, (path, *_) in read.derived.items()}
    if read.block != ("flink",) and INTERVAL not in {names.get(key, key) for key in about}:
        about[INTERVAL] = "not set: the job takes no checkpoints, unless its program sets an interval"
    return about


def flat(block: Mapping, place: DocumentPath) -> Iterator[tuple[str, DocumentPath, Any]]:
    """Yield (dotted key, path, value) of all keys in a mapping, flat or nested.

    `place` is the path of the mapping in its document.  Dotted keys are relative to it, paths are not.
    """

    def walk(node: Mapping, here: DocumentPath) -> Iterator[tuple[str, DocumentPath, Any]]:
        for key, value in node.items():
            if isinstance(value, Mapping):
                yield from walk(value, (*here, key))
            else:
                yield ".".join(map(str, (*here, key)[len(place) :])), (*here, key), value

    return walk(block, place)


def _documents(text: str, file: str) -> Iterator[tuple[Mapping, Reading]]:
    """Yield the mapping of each YAML document in a text, with the positions of its keys.  Empty documents are skipped."""
    lines = text.splitlines(keepends=True)
    for start, end in pairwise(
        [0, *(number for number, line in enumerate(lines) if re.match(r"---(\s|$)", line)), len(lines)]
    ):
        # leading line breaks keep the line numbers of the whole file
        yield from _document(
            "\n" * start + "".join(lines[start:end]), file, by_line=Path(file).name.startswith("flink-conf")
        )


def _document(text: str, file: str, *, by_line: bool) -> Iterator[tuple[Mapping, Reading]]:
    """Yield the mapping of one YAML document with its positions, or nothing if the document is empty.

    With `by_line`, a text that is not valid YAML is read line by line, as Flink 1.x reads flink-conf.yaml.  Raises
    `ScenarioError` with one problem.
    """
    reading = Reading(file)
    plain = compose(text, reading)
    # a manifest has parts that do not concern Flink's configuration: problems there are ignored
    reading.problems = {problem: None for problem in reading.problems if not _OTHER_PARTS.search(problem.path)}
    if reading.problems and by_line:
        reading = Reading(file)
        plain = _by_line(text, reading)
    if reading.problems and (found := re.search(r"\{\{|<#|\{%", text)):
        line = text[: found.start()].count("\n") + 1
        what = "is a template: render it first ('helm template', 'kustomize build') and give the result"
        raise ScenarioError([Problem(file, line, 1, "", what)])
    if reading.problems:
        raise ScenarioError(list(reading.problems)[:1])
    if plain is not None and not isinstance(plain, Mapping):
        raise ScenarioError.of(
            file, "is not a configuration of Flink: expected 'key: value' lines, or a manifest of Kubernetes"
        )
    if plain:
        yield plain, reading


def _by_line(text: str, reading: Reading) -> Mapping:
    """Return the keys of lines ``key: value``, as Flink 1.x does (GlobalConfiguration.loadYAMLResource).

    If a key occurs several times, the last one counts.  Other lines are ignored.  Warnings name what has no effect.
    """
    plain = Mapping()
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        key, colon, value = content.partition(": ")
        if content and not (colon and value.strip()):
            message = f"Flink ignores this line: expected 'key: value', with a space, not {one_line(content, 60)!r}"
            reading.warnings[Problem(reading.file, number, 1, "", message)] = None
        if colon and value.strip():
            if (before := reading.marks.get((key.strip(),))) is not None:
                message = f"has no effect: line {number} sets {key.strip()} again"
                reading.warnings[Problem(reading.file, before.line, 1, "", message)] = None
            plain[key.strip()] = value.strip().strip("'\"")
            reading.marks[key.strip(),] = Mark(reading.file, number, 1)
    return plain


def _of_manifests(file: str, text: str, manifests: list[tuple[Mapping, Reading]], name: str) -> FlinkFile:
    """Return the configuration of the resource `name`, or of the only one if `name` is "".

    Only resources of the first kind in `_KINDS` that occurs are considered.  A FlinkSessionJob also gets the keys of the
    FlinkDeployment that it runs in, if the file has it.  Raises `ScenarioError` if no or several resources match.
    """
    kinds = [kind for kind in _KINDS if any(plain["kind"] == kind for plain, _ in manifests)]
    if not kinds:
        kinds_found = ", ".join(dict.fromkeys(str(plain["kind"]) for plain, _ in manifests))
        expected = (
            "expected a FlinkDeployment or a FlinkSessionJob; of a ConfigMap write the file in it to a file of its own"
        )
        raise ScenarioError.of(file, f"holds {kinds_found}: {expected}")
    chosen = [(plain, reading) for plain, reading in manifests if plain["kind"] == kinds[0]]
    names = [str(value_at(plain, ("metadata", "name")) or "") for plain, _ in chosen]
    if name or len(chosen) > 1:
        chosen = [row for row, called in zip(chosen, names, strict=True) if called == name]
        if len(chosen) != 1:
            raise ScenarioError.of(
                file, f"holds the {kinds[0]}s {', '.join(names)}: name one of them, {file}#{names[0]}"
            )
    ((plain, reading),) = chosen
    session = value_at(plain, ("spec", "deploymentName"))
    around = [
        row
        for row in manifests
        if row[0]["kind"] == "FlinkDeployment" and value_at(row[0], ("metadata", "name")) == session
    ]
    result = FlinkFile(
        file, text, str(plain["kind"]), name or names[0], block=(*_spec_of(plain), _CONFIGURATION), marks=reading.marks
    )
    # the deployment of a session first, because the keys of the session job replace its keys
    for row, its in (*around, chosen[0]):
        _add_spec(result, row, its)
    return result


def _spec_of(plain: Mapping) -> DocumentPath:
    """Return the path of the spec of a Flink deployment in a manifest."""
    return ("spec", "template", "spec") if plain["kind"] == "FlinkBlueGreenDeployment" else ("spec",)


def _add_spec(result: FlinkFile, plain: Mapping, reading: Reading) -> None:
    """Add the keys and the spec of a resource to a configuration.  They replace earlier values.

    The spec overrides flinkConfiguration, as in the operator (FlinkConfigBuilder).
    """
    path = _spec_of(plain)

    def value(dotted: str) -> tuple[Any, Mark]:
        """Return the value and the position of a field of the spec; the value is None if the field is missing."""
        place = (*path, *dotted.split("."))
        return value_at(plain, place), reading.marks.get(place, Mark(result.file))

    block = (*path, _CONFIGURATION)
    if isinstance(keys := value_at(plain, block), Mapping):
        result.keys.update(
            {key: (value_of_key, reading.marks[place]) for key, place, value_of_key in flat(keys, block)}
        )
    slots, replicas = result.keys.get("taskmanager.numberOfTaskSlots", (1, None))[0], value("taskManager.replicas")
    # spec.taskManager.replicas is for standalone mode, in which a job uses all slots
    if str(replicas[0]).isdecimal() and str(slots).isdecimal():
        result.keys["parallelism.default"] = (int(replicas[0]) * int(slots), replicas[1])
    elif (parallelism := value("job.parallelism"))[0] is not None:
        result.keys["parallelism.default"] = parallelism
    version, cores = value("flinkVersion"), value("taskManager.resource.cpu")
    if match := re.fullmatch(r"v(\d+)_(\d+)", str(version[0])):
        result.derived["spec.flinkVersion"] = ("cluster", "version"), f"{match[1]}.{match[2]}", version[1]
    elif version[0] is not None:
        message = f"{one_line(repr(version[0]), 40)} is no version of Flink's operator, which has v1_20: none is taken"
        result.ignored.append(
            Problem(version[1].file, version[1].line, version[1].column, "spec.flinkVersion", message)
        )
    if match := re.fullmatch(r"([1-9]\d*)(\.0*)?", str(cores[0])):
        result.derived["spec.taskManager.resource.cpu"] = ("cluster", "cores"), int(match[1]), cores[1]
    if ("kind",) in reading.marks and value("mode")[0] != "standalone":  # a patch has no kind
        result.derived["kind"] = ("restart", "provider"), "kubernetes", reading.marks[("kind",)]
    for name in _NOT_MODELLED:
        if (value_of_key := value(name))[0] is not None and f"spec.{name}" not in result.derived:
            result.keys[f"spec.{name}"] = value_of_key
