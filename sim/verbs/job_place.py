"""A real job and how it is read: an address, a folder or zip of saved answers, an archive, logs of a JobManager, or a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.address import Address
from sim.history.choice import MissingCheckpointError
from sim.recordings import read_source
from sim.recordings.source.rest.lone import LoneAnswer, read_lone_answer
from sim.units import parse_duration
from sim.verbs.options import OptionError, parsed

if TYPE_CHECKING:
    from sim.recordings import RestSnapshot
    from sim.recordings.reading import RecordingSource
    from sim.verbs.listener import Listener


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job is read, and how it is asked for."""

    sources: Sequence[str | PathLike[str] | Address]
    job: str | None = None  # its id, where there are several
    deadline: str | None = None  # of a live one: the end of all questions, a duration
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every question

    def __post_init__(self) -> None:
        sources = tuple(
            Address(str(source)) if isinstance(source, str) and Address.is_address(source) else source for source in self.sources
        )
        object.__setattr__(self, "sources", sources)

    @property
    def is_live(self) -> bool:
        return isinstance(self.sources[0], Address)

    def read(
        self, sample: str, save: Path | None = None, *, keep_secrets: bool = False, under_way: bool = False, listener: Listener
    ) -> RecordingSource:
        """Read what is known of the job.  Of a live one metrics are watched for `sample`, and `save` keeps the answers in a folder.

        `under_way`: also of a checkpoint that has not ended.
        RecordingError: not readable.  OptionError: what does not go together.
        """
        live_only = (("save", save is not None), ("headers", bool(self.headers)), ("deadline", self.deadline is not None))
        for option, is_given in live_only:
            if is_given and not self.is_live:
                raise OptionError(option, "is for live jobs (http://HOST:8081)")
        if keep_secrets and save is None:
            raise OptionError("keep_secrets", "is for saved answers: scenarios are written from masked ones")
        if self.is_live and len(self.sources) > 1:
            raise OptionError("sources", "one address at a time; only the parts of a log go together")
        if not self.is_live:
            return read_source([Path(str(name)) for name in self.sources], self.job)
        from sim.recordings.source.rest.fetching import NoJobError

        try:
            snapshot = self._fetched(sample, save, listener, under_way=under_way)
        except NoJobError as error:  # nothing to import, but answers of the cluster
            _keep(error.snapshot, save, listener, keep_secrets=keep_secrets)
            raise
        _keep(snapshot, save, listener, keep_secrets=keep_secrets)
        return snapshot

    def lone_answer(self) -> LoneAnswer | None:
        """The one answer of Flink that the source is; None: it is something else.  RecordingError: not readable."""
        if self.is_live or len(self.sources) > 1:
            return None
        return read_lone_answer(Path(str(self.sources[0])))

    @contextmanager
    def named(self) -> Iterator[None]:
        """A checkpoint that is missed is missed at this place."""
        try:
            yield
        except MissingCheckpointError as error:
            raise MissingCheckpointError(f"{self.sources[0]}: {error}") from None

    def _fetched(self, sample: str, save: Path | None, listener: Listener, *, under_way: bool) -> RestSnapshot:
        from sim.recordings import fetch

        sample_s = parsed("sample", sample, parse_duration) / 1e9
        total_s = None if self.deadline is None else parsed("deadline", self.deadline, parse_duration) / 1e9
        if total_s is not None and total_s <= 0:
            raise OptionError("deadline", "expected more than nothing")
        if save is not None:
            _make_new(save)  # before the job is watched
        address = self.sources[0]
        with _progress(listener, round(sample_s)) as (passed, answered):
            return fetch(
                address.url if isinstance(address, Address) else str(address), self.job,
                sample_s=sample_s, total_s=total_s, headers=dict(self.headers), under_way=under_way,
                watch=passed, answered=answered,
            )  # fmt: skip


@contextmanager
def _progress(listener: Listener, whole_s: int) -> Iterator[tuple[Callable[[float], None], Callable[[int], None]]]:
    """Receivers of the seconds that metrics were watched, and of the number of answers."""
    seen_s = answers = 0

    def passed(seconds: float) -> None:
        nonlocal seen_s
        seen_s = round(seconds)
        watch(seen_s, seen_s)

    def answered(count: int) -> None:
        nonlocal answers
        answers = count
        watch(seen_s, seen_s)

    with listener.progress("watching metrics", whole_s, whole_s, what_each="s", details=lambda: f"{answers:,} answers") as watch:
        yield passed, answered


def _make_new(folder: Path) -> None:
    from sim.recordings.source.rest.saved import is_free

    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = is_free(folder)
    except OSError as error:
        raise OptionError("save", f"{folder}: {error.strerror}") from None
    if not empty:
        raise OptionError("save", f"{folder}: is not empty")


def _keep(snapshot: RestSnapshot, folder: Path | None, listener: Listener, *, keep_secrets: bool) -> None:
    from sim.recordings import save
    from sim.recordings.source.rest.snapshot import first_names

    if folder is None:
        return
    count = save(snapshot, folder, keep_secrets=keep_secrets)
    secrets = "secrets included" if keep_secrets else f"{count} secret{'' if count == 1 else 's'} masked"
    but = f" but {len(snapshot.missing)}, {first_names(list(snapshot.missing))}" if snapshot.missing else ""
    advice = "look through them before you send them: they hold the configuration of the cluster"
    listener.message(f"{folder}: all answers{but}, {secrets}; {advice}")
