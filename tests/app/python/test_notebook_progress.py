"""The line below a cell."""

from types import SimpleNamespace

from sim.app.verbs import common
from sim.app.verbs.common import Work
from sim.studies.progress import no_watch


def test_the_line_says_what_is_done_and_what_is_left():
    assert common.line_of("p4", "3 of 12 runs", 0.25, 10.0) == "p4: 3 of 12 runs, 25 %, 30 s left"
    assert common.line_of("p4", "0 of 12 runs", 0.0, 3.0) == "p4: 0 of 12 runs, 0 %"


def test_only_a_notebook_is_shown_a_line_and_only_a_patient_one(monkeypatch):
    printed = []
    handle = SimpleNamespace(update=lambda line, **_: printed.append(line["text/plain"]))
    monkeypatch.setattr(common, "_display", lambda line: printed.append(line["text/plain"]) or handle)
    now = iter([0.0, 1.0, 2.5, 3.5, 4.0])
    monkeypatch.setattr(common.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(common, "_in_notebook", lambda: True)

    with common.Notebook().progress(Work("p4", 100, 4, "runs")) as watch:
        watch(1, 10)  # after a second: too early
        watch(2, 50)
        watch(3, 75)

    assert printed == ["p4: 2 of 4 runs, 50 %, 2 s left", "p4: 3 of 4 runs, 75 %, 1 s left", "p4: 4 s"]
    monkeypatch.setattr(common, "_in_notebook", lambda: False)
    with common.Notebook().progress(Work("p4", 100, 4)) as watch:
        assert no_watch is watch
