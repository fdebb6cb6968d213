"""`explain` of a real job: what its checkpoints spent their time on, from any source that `import` reads; nothing is simulated."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sim.address import Address
from sim.history.answer import answer
from sim.history.history import durations_ms
from sim.history.partial import history_of_answer
from sim.history.reading import history_of
from sim.history.text import answer_text, plain
from sim.recordings.reading import answers_beside, is_folder_of_logs, is_scenario
from sim.recordings.source.files import RecordingError
from sim.verbs.explanation import Explanation
from sim.verbs.findings import issue_remarks, tell
from sim.verbs.importing import scenarios_of_source
from sim.verbs.job_place import JobPlace
from sim.verbs.known_issues import known_issues_json
from sim.verbs.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.scenario import Scenario
    from sim.recordings.reading import RecordingSource


_SCENARIOS = (".yaml", ".yml")
_HEAD_BYTES = 1_000_000


def explain_job(place: JobPlace, *, checkpoint: int | None = None, verify: bool = False, listener: Listener | None = None) -> Explanation:
    """The checkpoint of this id, or the slow ones of the history.

    `verify`: the job is imported and simulated as it is and with what its path says would help; metrics of a live one are watched a minute.

    RecordingError: not readable.  MissingCheckpointError: nothing to explain.  OptionError: what does not go together.
    """
    listener = listener or Listener()
    try:
        source = place.read("60 s" if verify else "0 s", under_way=True, listener=listener)
    except RecordingError:
        if verify or (lone := place.lone_answer()) is None:
            raise
        with place.named():
            told = answer(history_of_answer(lone), checkpoint)
        found = Explanation(answer_text(told), plain(told)["explained"], plain(told))
        listener.result(found)
        return found
    with place.named():
        found = explain_source(source, checkpoint, verify=verify, listener=listener)
    listener.result(found)
    return found


def explain_source(
    source: RecordingSource, checkpoint: int | None = None, *, verify: bool = False, listener: Listener | None = None
) -> Explanation:
    """Explain a source that was read before.  RecordingError: it has to be simulated, and gives no scenario."""
    listener = listener or Listener()
    found = answer(history_of(source), checkpoint)
    scenarios: Sequence[Scenario] = ()
    with suppress(RecordingError):  # no scenario can be made of it
        scenarios = scenarios_of_source(source)
    tell(issue_remarks("job", scenarios), listener)
    history = {**plain(found), "known_issues": known_issues_json(scenarios)}
    if not verify:
        return Explanation(answer_text(found), history["explained"], history)
    from sim.verbs.helped import helped

    changes = helped(source, found.accounts, durations_ms(found.history), listener)
    return Explanation(f"{answer_text(found)}\n\n{changes.text}", history["explained"], history | {"what_if": changes.plain})


def is_real(name: str) -> bool:
    """Whether `name` is of a job that really ran, and not a scenario file or a folder of results.  Content decides where a name may not."""
    if Address.is_address(name):
        return True
    path = Path(name)
    if path.is_dir():
        return bool((path / "jobs").is_dir() or is_folder_of_logs(path) or answers_beside(path))
    if path.suffix in _SCENARIOS or not path.is_file():
        return False
    with path.open("rb") as file:
        return not is_scenario(file.read(_HEAD_BYTES).decode("utf-8", "replace"))
