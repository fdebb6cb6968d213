"""The line below a cell."""

from types import SimpleNamespace

from sim.api import progress


def test_the_line_says_what_is_done_and_what_is_left():
    assert "p4: 3 of 12 runs, 25 %, 30 s left" == progress.line_of("p4", "3 of 12 runs", 0.25, 10.0)
    assert "p4: 0 of 12 runs, 0 %" == progress.line_of("p4", "0 of 12 runs", 0.0, 3.0)


def test_only_a_notebook_is_shown_a_line_and_only_a_patient_one(monkeypatch):
    printed = []
    handle = SimpleNamespace(update=lambda line, **_: printed.append(line["text/plain"]))
    monkeypatch.setattr(progress, "_display", lambda line: printed.append(line["text/plain"]) or handle)
    now = iter([0.0, 1.0, 2.5, 3.5, 4.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)

    with progress.watching("p4", 100, 4) as watch:
        watch(1, 10)  # after a second: too early
        watch(2, 50)
        watch(3, 75)

    assert ["p4: 2 of 4 runs, 50 %, 2 s left", "p4: 3 of 4 runs, 75 %, 1 s left", "p4: 4 s"] == printed
    monkeypatch.setattr(progress, "_in_notebook", lambda: False)
    with progress.watching("p4", 100, 4) as watch:
        assert progress.no_watch is watch
