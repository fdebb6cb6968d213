"""Apply Flink keys, of `flink:` and of the file in `flink-file:`, to the scenario document before validation.

A modelled key has the same effect as the scenario key for it.  Other keys are listed in warnings; a misspelt modelled key
is an error.  Both ``execution.checkpointing.interval: 30s`` and the nested form of config.yaml are read.

If a value is set several times, --set takes precedence over the file of --flink, and that over the scenario, key by key.
A value that is set twice in a scenario is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from sim.model import units
from sim.model.checkpoint import ALIGNED_TIMEOUT, BARRIERS, MODE, UNALIGNED, barriers_of
from sim.model.cluster import profile_of
from sim.model.faults import RESTARTS, Restart
from sim.model.schema.flink_file import FILE, FlinkFile, flat, read_flink_file
from sim.model.schema.flink_keys import (
    APPROXIMATE,
    INTERVAL,
    NOT_STARTED,
    OPEN,
    UNLIMITED,
    current_names,
    has_key,
    listed_keys,
    modelled_keys,
    similar_key,
)
from sim.model.schema.text import DocumentPath, Mapping, Mark, Reading, compose, copy_node, dotted, value_at, write
from sim.model.state import BACKENDS, backend_named
from sim.model.text import did_you_mean, masked_text, masked_value

_DEBLOAT = "taskmanager.network.memory.buffer-debloat."
_PARTITIONER = "taskmanager.network.adaptive-partitioner."
_RESTART = "restart-strategy."
_TTL = "table.exec.state.ttl"  # of the operators of a SQL job
_LSM, _CHANGELOG = ("job", "VERTEX", "state", "lsm"), ("job", "VERTEX", "state", "changelog")
_STORE = ("storage", "object-store")
LOCAL_BACKUP, LOCAL_RESTORE = "execution.checkpointing.local-backup.enabled", "execution.state-recovery.from-local"
LOCAL_RECOVERY = "state.backend.local-recovery"  # deprecated option that enables both
CHANGELOG = "state.changelog.enabled"
MERGING = "execution.checkpointing.file-merging.enabled"
_SLOTS = "taskmanager.numberOfTaskSlots"

_VERTEX_DEFAULTS: dict[str, tuple[str, ...]] = {
    "parallelism.default": (),
    "pipeline.max-parallelism": (),
    "table.exec.source.idle-timeout": ("source",),
    "pipeline.auto-watermark-interval": ("source",),
    "state.backend.type": ("state",),
}
"""Flink key -> the section of a vertex for which it is a default."""


def apply_flink(plain: Any, reading: Reading, folder: Path) -> None:
    """Copy each key of `flink:` and of the file in `flink-file:` to its place in the document `plain`."""
    if not isinstance(plain, Mapping) or not {"flink", FILE} & set(plain):
        return
    plain.update(copy_node(plain, deep=True))
    move = _FlinkKeyMapper(plain, reading)
    if isinstance(block := plain.get("flink"), Mapping):
        move.entries += flat(block, ("flink",))
    if isinstance(name := plain.get(FILE), str):
        move.file = read_flink_file(Path(os.path.normpath(folder / name)))
        reading.warnings |= dict.fromkeys(move.file.ignored)
        about = " ".join(filter(None, (move.file.kind, move.file.resource))) or "Flink's configuration"
        reading.marks[FILE, ""] = Mark(move.file.file, path=about)
        for key, (value, mark) in move.file.keys.items():
            reading.marks[FILE, key] = replace(mark, path=key)
            move.entries.append((key, (FILE, key), value))
    move.apply()


_BLOCK = re.compile(r"^flink:.*?(?=(?:^(?:#.*)?\n)*^[^\s#]|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")


def masked_scenario(text: str) -> str:
    """Return the text of a scenario with secrets in its block `flink` masked.

    Keys with secrets have no effect, so the copy means the same.  If there are any, it has no comments in the block, or none
    at all if the block does not begin a line.
    """
    if "flink" not in text:  # a scenario with its history is long
        return text
    document = compose(text, Reading(""))
    if not isinstance(document, Mapping) or not isinstance(block := document.get("flink"), Mapping):
        return text
    values = Mapping((key, value) for key, _, value in flat(block, ("flink",)))
    masked = Mapping(
        (key, masked_value(key, value) if isinstance(value, str) else value) for key, value in values.items()
    )
    if masked == values:
        return _BLOCK.sub(lambda found: _COMMENT.sub(lambda comment: masked_text(comment[0]), found[0]), text)
    written = "\n".join(write({"flink": masked}, "").splitlines()[2:])
    copy, count = _BLOCK.subn(lambda _: f"{written}\n", text)
    return copy if count else write({**document, "flink": masked}, "")


class _FlinkKeyMapper:
    """Applies Flink keys to a document.

    `apply` first parses all keys, those with the highest precedence first, and sets the ones that are independent of each
    other.  Then it sets those that depend on other keys or on the sections that the scenario has.
    """

    def __init__(self, plain: Mapping, reading: Reading) -> None:
        self.plain = plain
        self.reading = reading
        self.file: FlinkFile | None = None
        # (key as it is written, path where it is written, value)
        self.entries: list[tuple[str, DocumentPath, Any]] = []
        self.unmodelled: list[tuple[str, DocumentPath]] = []  # known keys without an effect here, and their paths
        self.source_of: dict[str, DocumentPath] = {}  # key of Flink -> path where it is written
        self.values: dict[str, list[str | bool]] = {}  # key -> its parsed value, or those of a sweep axis
        self.lists: set[str] = set()
        self.keys, self.current = modelled_keys(), current_names()

    def apply(self) -> None:
        if self.file is not None:
            for path, value, mark in self.file.derived.values():
                self.reading.marks[FILE, path[-1]] = replace(mark, path=f"{self.file.kind}: {path[-1]}")
                self._set(path, value, (FILE, path[-1]))
        profile = self._profile()
        for written, place, value in sorted(self.entries, key=lambda entry: -self._precedence(entry[1])):
            key = self.current.get(written, written)
            if (first := self.source_of.get(key)) is not None:  # it has the same or a higher precedence
                if self._precedence(first) == self._precedence(place):
                    self.reading.wrong(place, f"duplicates {dotted(first[1:])}, the same option: remove one of them")
            elif key not in self.keys:
                self._on_unmodelled_key(written, place, value, profile)
            elif not self.keys[key].flink.last and not has_key(profile, written):
                there = next((name for name in self.keys[key].flink.older if has_key(profile, name)), None)
                instead = f"its name there is {there}" if there else f"Flink {', '.join(listed_keys()[written])} does"
                self.reading.warn(place, f"has no effect: Flink {profile} does not know this key ({instead})")
            elif value is None:
                *section, name = self.keys[key].path
                if (
                    self.file is not None
                    and self.file.is_patch
                    and isinstance(node := value_at(self.plain, tuple(section)), Mapping)
                ):
                    node.pop(name, None)  # null in a patch removes the key
                self.reading.warn(place, "has no value and is ignored, as in Flink")
            else:
                self.source_of[key] = place
                self._parse_value(key, place, value)
        self._barriers()
        self._buffer_timeout()
        self._apply_toggle(f"{_DEBLOAT}enabled", ("cluster", "network", "debloat"))
        self._apply_toggle(f"{_PARTITIONER}enabled", ("cluster", "network", "adaptive-partitioner"))
        self._apply_toggle(MERGING, ("storage", "file-merging"))
        self._restart()
        self._slots()
        for key, vertex_section in _VERTEX_DEFAULTS.items():
            self._vertices(key, vertex_section)
        self._state()
        self._local_recovery()
        self._storage()
        if self.file is not None and value_at(self.plain, ("checkpoint", "interval")) is None:
            self._ask_for_interval()
        self._note_effects()

    def _ask_for_interval(self) -> None:
        """Report a missing interval.  Flink's default is no checkpoints, but the program may set one, so nothing is assumed."""
        if INTERVAL not in self.source_of:
            what = f"has no {INTERVAL}, and neither has the scenario: unless its program sets an interval, the job takes no checkpoints"
            self.reading.wrong(
                (FILE, ""), f"{what}; write checkpoint: {{interval: off}}, or an interval such as {{interval: 30 s}}"
            )
        self._set(
            ("checkpoint", "interval"), "off", (FILE, "")
        )  # a placeholder, so that validation does not report it again

    def _precedence(self, place: DocumentPath) -> int:
        """Return the precedence of a value: 2 for --set, 1 for the file of --flink, 0 for the scenario and its files."""
        if place[0] == FILE:
            return int(self.reading.marks[FILE,].file != self.reading.file)
        mark = self.reading.marks.get(place)
        return 2 if mark is not None and mark.file != self.reading.file else 0

    def _on_unmodelled_key(self, key: str, place: DocumentPath, value: Any, profile: str) -> None:
        """Handle a key that is not modelled: count known ones, list others, report misspelt ones as errors."""
        self.reading.written_keys.setdefault(key, masked_value(key, str(value)))
        if key in APPROXIMATE and "true" in str(value).lower() and has_key(profile, key):
            self.reading.wrong(place, f"is true: {NOT_STARTED}; remove it")
        elif key not in listed_keys() and (near := similar_key(key, modelled=True)):
            self.reading.wrong(place, f"unknown configuration key of Flink (did you mean '{near}'?)")
        elif key in listed_keys() or key.startswith(OPEN):
            self.unmodelled.append((key, place))
        else:
            near = similar_key(key, modelled=False)
            self.reading.warn(
                place,
                f"is an unknown key of Flink: it has no effect here{f' (the nearest one is {near!r})' if near else ''}",
            )

    def _warn_of_no_effect(self, key: str, why: str) -> None:
        self.reading.warn(self.source_of[key], f"has no effect{why}")

    def _profile(self) -> str:
        """Return the profile of the document, or that of its version."""
        profile, version = (value_at(self.plain, ("cluster", key)) for key in ("profile", "version"))
        try:
            return str(profile or profile_of(str(version or "2")))
        except ValueError:  # reported by validation
            return "2.x"

    def _note_effects(self) -> None:
        """Add notes about what was read from the file, and what has no effect."""
        if self.file is not None:
            applied = [
                f"{'.'.join(path)} {value}"
                + (f" (simulated as profile {profile_of(value)})" if path[-1] == "version" else "")
                for path, value, _ in self.file.derived.values()
            ]
            applied += [
                f"{key} {str(self._written(key)).replace('True', 'true').replace('False', 'false')}"
                for key, place in self.source_of.items()
                if place[0] == FILE and key in self.values
            ]
            self.reading.note((FILE, ""), f"{len(applied)} values applied: {', '.join(applied) or 'none'}")
        for source in (("flink",), (FILE, "")):  # the block, and the file as a whole
            if found := [key for key, place in self.unmodelled if place[0] == source[0]]:
                more = f" and {len(found) - 3} more" if len(found) > 3 else ""
                count = f"{len(found)} keys" if more or len(found) > 1 else "1 key"
                mark = self.reading.marks.get(source)  # none: all keys are of --set
                hint = f" ('ckptsim explain-key {mark.file}' lists all keys)" if mark else ""
                self.reading.warn(
                    source, f"not modelled, no effect here: {count} of Flink: {', '.join(found[:3])}{more}{hint}"
                )

    def _parse_value(self, key: str, place: DocumentPath, value: Any) -> None:
        form = self.keys[key].form
        given = value if isinstance(value, list) else [value]
        if isinstance(value, list) and place[0] == FILE:
            self.reading.wrong(place, "expected one value, not a list")
            return
        read: list[Any] = []
        for item in given:
            try:
                read.append(_READERS[form](item))
            except units.UnitError as error:
                has_placeholder = re.search(r"\$\{|\{\{|^\$", str(item))
                self.reading.wrong(
                    place, f"'{item}' is a placeholder: fill in its value first" if has_placeholder else str(error)
                )
        if len(read) < len(given) or not read:
            return
        if key == "state.backend.type" and str(value).lower() not in BACKENDS:
            self._note_backend(place, value, str(read[0]))
        self.values[key] = read
        if isinstance(value, list):
            self.lists.add(key)
        if self.keys[key].is_independent:
            self._set(self.keys[key].path, self._written(key), key)

    def _note_backend(self, place: DocumentPath, value: Any, backend: str) -> None:
        """Note that a backend was named by an older name or a class."""
        if any(word in str(value).lower() for word in ("jobmanager", "memory")):
            self.reading.warn(
                place, f"{value} is simulated as {backend}; checkpoints in the JobManager's memory are not modelled"
            )
        elif not isinstance(value, list):
            self.reading.note(place, f"{value} is now called {backend}")

    def _set(self, path: tuple[str, ...], value: Any, key: str | DocumentPath) -> None:
        """Set a value at `path`, unless a value with higher precedence is set; two values of the scenario are an error."""
        place = self.source_of[key] if isinstance(key, str) else key
        node = self.plain
        for depth, step in enumerate(path[:-1]):
            if node.get(step) is None:
                node[step] = Mapping().at(path[: depth + 1])
            if not isinstance(node[step], Mapping):
                return  # reported by validation
            node = node[step]
        if path[-1] in node:
            mark = self.reading.marks[path]
            if mark.file != self.reading.file:
                return
            if not self._precedence(place):
                self.reading.wrong(place, f"duplicates {dotted(path)} on line {mark.line}: remove one of them")
                return
            if str(node[path[-1]]) != str(value):
                self.reading.note(
                    place, f"{value} replaces {node[path[-1]]}, {dotted(path)} on line {mark.line} of {mark.file}"
                )
        node[path[-1]] = value
        origin = self.reading.marks.get(place, Mark(self.reading.file))
        self.reading.marks[path] = replace(origin, path=origin.path or dotted(place))

    def _barriers(self) -> None:
        """Combine mode, unaligned and aligned timeout to one barrier mode (CheckpointConfig)."""
        written = [key for key in (UNALIGNED, ALIGNED_TIMEOUT, MODE) if key in self.values]
        if not written:
            return
        choices: list[Any] = []
        for unaligned, timeout, mode in product(
            *(
                self.values.get(key, [default])
                for key, default in ((UNALIGNED, False), (ALIGNED_TIMEOUT, "0 s"), (MODE, "exactly_once"))
            )
        ):
            choice: Any = barriers_of(
                unaligned=bool(unaligned), has_deadline=timeout != "0 s", exactly_once=mode == "exactly_once"
            ).name
            if BARRIERS[choice].has_deadline:
                choice = Mapping({choice: timeout})
            if choice not in choices:
                choices.append(choice)
        if ALIGNED_TIMEOUT in written and True not in self.values.get(UNALIGNED, [False]):
            self._warn_of_no_effect(ALIGNED_TIMEOUT, f" without {UNALIGNED}: true")
        if True in self.values.get(UNALIGNED, [False]) and self.values.get(MODE) == ["at_least_once"]:
            self._warn_of_no_effect(UNALIGNED, f" with {MODE}: AT_LEAST_ONCE")
        swept = any(key in self.lists for key in written) and len(choices) > 1
        self._set(("checkpoint", "barriers"), choices if swept else choices[0], written[0])

    def _buffer_timeout(self) -> None:
        enabled, interval = "execution.buffer-timeout.enabled", "execution.buffer-timeout.interval"
        if self._single(enabled) is False:
            self._set(("cluster", "network", "buffer-timeout"), "never", enabled)
        elif interval in self.values:
            self._set(("cluster", "network", "buffer-timeout"), self._written(interval), interval)

    def _apply_toggle(self, enabled: str, path: tuple[str, ...]) -> None:
        """Move a switch with its details, which have no effect without it."""
        details = {name: key for key, name in self._keys_in_section(path).items() if key in self.values}
        if enabled not in self.values or not any(self.values[enabled]):
            for key in details.values():
                self._warn_of_no_effect(key, f" without {enabled}: true")
        if enabled not in self.values:
            return
        section = Mapping((name, self._written(key)) for name, key in details.items())
        choices: list[Any] = [(section or "on") if on else "off" for on in self.values[enabled]]
        for name, key in details.items():  # for messages about the details
            place = self.source_of[key]
            self.reading.marks[(*path, name)] = replace(
                self.reading.marks[place], path=f"{dotted(place)} {section[name]}"
            )
        self._set(path, choices if enabled in self.lists else choices[0], enabled)

    def _restart(self) -> None:
        """Move the keys of the configured restart strategy; those of other strategies have no effect."""
        strategy = self._single(_RESTART + "type")
        is_written = strategy is not None or value_at(self.plain, ("restart", "strategy")) is not None
        if strategy is None:
            strategy = value_at(self.plain, ("restart", "strategy")) or Restart().strategy
        else:
            self._set(("restart", "strategy"), strategy, _RESTART + "type")
        for name, key in self.keys.items():
            if not key.flink.when:
                continue
            if name in self.values and key.flink.when != strategy:
                # Flink's default depends on the release and on whether checkpoints are enabled
                other = (
                    f" with {_RESTART}type: {strategy}" if is_written else f" without {_RESTART}type: {key.flink.when}"
                )
                self._warn_of_no_effect(name, other)
            elif name in self.values:
                if self.values[name] != [None]:  # unlimited: the same as not set
                    self._set(key.path, self._written(name), name)
            elif (
                _RESTART + "type" in self.values
                and key.flink.default
                and key.flink.when == strategy
                and key.path[-1] not in (self.plain.get("restart") or ())
            ):
                self._set(key.path, _READERS[key.form](key.flink.default), _RESTART + "type")

    def _slots(self) -> None:
        """Set slots and placement: subtasks of one index share a slot, and TaskManagers are filled in order, as in Flink."""
        if _SLOTS not in self.values:
            return
        placement = value_at(self.plain, ("cluster", "placement"))
        if placement not in (None, "spread"):
            self._warn_of_no_effect(_SLOTS, f" with cluster.placement: {placement}")
            return
        self._set(("cluster", "slots"), self._written(_SLOTS), _SLOTS)

    def _vertices(self, key: str, section: tuple[str, ...]) -> None:
        """Set a default for every vertex that has this section, unless it has a value."""
        if (value := self._single(key)) is None:
            return
        inside = self.keys[key].path[2 + len(section) :]
        holders = list(self._vertices_with_section(section))
        replaces = key == "state.backend.type" and self._precedence(self.source_of[key])
        explicit = [vertex for vertex, body in holders if value_at(body, inside) is not None]
        for vertex, _ in holders:
            if replaces or vertex not in explicit:
                self._set(("job", vertex, *section, *inside), value, key)
        if explicit and len(explicit) == len(holders) and not replaces and self.source_of[key][0] == FILE:
            named = f"{', '.join(explicit[:3])}{' ...' * (len(explicit) > 3)}"
            self._warn_of_no_effect(key, f": all vertices set their own value ({named})")

    def _vertices_with_section(self, section: tuple[str, ...]) -> Iterator[tuple[str, Mapping]]:
        """Yield (vertex, section) of the vertices that have a section."""
        job = self.plain.get("job")
        for vertex, body in job.items() if isinstance(job, Mapping) else ():
            if isinstance(found := value_at(body, section), Mapping):
                yield vertex, found

    def _state(self) -> None:
        """Move the keys of state backends to all vertices with state."""
        values = {
            key: self._single(key)
            for key in (*self._keys_in_section(_LSM), *self._keys_in_section(_CHANGELOG), _TTL, CHANGELOG)
            if key in self.values
        }
        used: set[str] = set()
        for vertex, state in self._vertices_with_section(("state",)):
            for place, value, key in self._state_values_for(state, values):
                self._set(("job", vertex, "state", *place), value, key)
                used.add(key)
        for key, value in values.items():
            if value not in (None, False) and key not in used and key != CHANGELOG:
                self._warn_of_no_effect(key, ": no vertex has this kind of state")

    def _state_values_for(self, state: Mapping, values: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
        """Yield (path inside `state:`, value, key) of each key that applies to a vertex with this state.

        A TTL applies only to state that records write to, because state that is never written would only expire.
        """
        backend = state.get("backend")
        if isinstance(backend, str) and backend in BACKENDS and "lsm" in BACKENDS[backend].sections:
            yield from (
                (("lsm", name), values[key], key) for key, name in self._keys_in_section(_LSM).items() if key in values
            )
        if _TTL in values and ("growth" in state or "update" in state):
            yield ("ttl",), values[_TTL], _TTL
        is_on = state.get("changelog") in (True, "on")
        if is_on and any(key in values for key in self._keys_in_section(_CHANGELOG)):
            state["changelog"] = None  # replaced by a section below
        if is_on or values.get(CHANGELOG) or isinstance(state.get("changelog"), Mapping):
            for key, name in self._keys_in_section(_CHANGELOG).items():
                if key not in values and not values.get(CHANGELOG):
                    continue
                default = self.keys[key].flink.default
                if key in values or default:
                    yield ("changelog", name), values.get(key, default), key if key in values else CHANGELOG

    def _keys_in_section(self, section: tuple[str, ...]) -> dict[str, str]:
        """Return the keys of a section by Flink key."""
        return {name: key.path[-1] for name, key in self.keys.items() if key.path[:-1] == section}

    def _local_recovery(self) -> None:
        """Set local recovery, if local copies are both kept and used (LOCAL_BACKUP_ENABLED, LOCAL_RECOVERY)."""
        if LOCAL_RECOVERY in self.values:
            self._set(("checkpoint", "local-recovery"), self._written(LOCAL_RECOVERY), LOCAL_RECOVERY)
            return
        both = [self.values.get(key, [False]) for key in (LOCAL_BACKUP, LOCAL_RESTORE)]
        if all(map(any, both)):
            swept = [key for key in (LOCAL_BACKUP, LOCAL_RESTORE) if key in self.lists]
            value = self._written(swept[0]) if len(swept) == 1 else True
            self._set(
                ("checkpoint", "local-recovery"), self._single(swept[1]) if len(swept) > 1 else value, LOCAL_BACKUP
            )
        elif any(map(any, both)):
            key, needed = (LOCAL_BACKUP, LOCAL_RESTORE) if any(both[0]) else (LOCAL_RESTORE, LOCAL_BACKUP)
            self._warn_of_no_effect(key, f" without {needed}: true")

    def _storage(self) -> None:
        """Move the keys of uploads to an object store, which have no effect with other storage."""
        for key, name in self._keys_in_section(_STORE).items():
            if key in self.values and isinstance(value_at(self.plain, _STORE), Mapping):
                self._set((*_STORE, name), self._single(key), key)
            elif key in self.values:
                self._warn_of_no_effect(key, ": the scenario has no storage.object-store")

    def _written(self, key: str) -> Any:
        """Return a value as written, or the list of an axis."""
        return self.values[key] if key in self.lists else self.values[key][0]

    def _single(self, key: str) -> Any:
        if key in self.lists:
            self.reading.wrong(self.source_of[key], "cannot be a list here: write the list at the key of the scenario")
            return None
        return self.values[key][0] if key in self.values else None


def _boolean(value: object) -> bool:
    if (text := str(value).lower()) not in ("true", "false"):
        raise units.UnitError(f"expected true or false, not '{value}'")
    return text == "true"


def _integer(value: object) -> int:
    if isinstance(value, bool) or not (text := str(value).strip()).isdecimal() or len(text) > 10 or int(text) >= 2**31:
        raise units.UnitError(f"expected a whole number, not '{value}'")
    return int(text)


def _one_of(*options: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        text = str(value).lower().replace("-", "_")
        if text not in options:
            raise units.UnitError(f"expected {' or '.join(options)}, not '{value}'{did_you_mean(text, options)}")
        return text

    return read


def _backend(value: object) -> str:
    if (found := backend_named(str(value))) is not None:
        return found
    known = f"expected {' or '.join(BACKENDS)}, or a class of theirs"
    raise units.UnitError(f"the state backend {value} is not modelled: {known}{did_you_mean(str(value), BACKENDS)}")


_STRATEGIES = {spelling: kind.name for kind in RESTARTS.values() for spelling in kind.spellings}
"""Flink's names of restart strategies (RestartStrategyOptions), with hyphens as underscores."""


def _interval(value: object) -> str:
    interval = units.parse_flink_duration(value)
    return units.format_duration(interval) if interval else "off"


_SCHEDULERS = {"default": "default", "ng": "default", "adaptive": "adaptive", "adaptivebatch": "default"}
"""SchedulerType -> the scheduler used for a streaming job."""
_READERS: dict[str, Callable[[object], Any]] = {
    "interval": _interval,
    "duration": lambda value: units.format_duration(units.parse_flink_duration(value)),
    # a number, or from 2.0 with a unit
    "milliseconds": lambda value: units.format_duration(units.parse_flink_duration(value)),
    "size": lambda value: units.format_size(units.parse_flink_size(value)),
    "integer": _integer,
    "attempts": lambda value: None if str(value).strip() == UNLIMITED else _integer(value),
    "threshold": lambda value: 0 if str(value).strip() == "-1" else _integer(value),
    "percent": lambda value: f"{_integer(value)} %",
    "boolean": _boolean,
    "finish": lambda value: "flink" if _boolean(value) else "off",  # FLIP-147's switch
    "mode": _one_of("exactly_once", "at_least_once"),
    "backend": _backend,
    "changelog": _one_of("filesystem", "memory"),
    "failover": _one_of("region", "full"),
    "scheduler": lambda value: _SCHEDULERS[_one_of(*_SCHEDULERS)(str(value).lower())],
    "reactive": lambda value: _one_of("reactive")(str(value).lower()) == "reactive",
    "wait": lambda value: (
        "0 s" if str(value).strip().startswith("-") else units.format_duration(units.parse_flink_duration(value))
    ),
    "number": lambda value: units.format_number(units.parse_number(value)),
    "share": lambda value: units.format_share(units.parse_number(value)),
    "strategy": lambda value: _STRATEGIES[_one_of(*_STRATEGIES)(value)],
}
