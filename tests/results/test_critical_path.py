"""Files of one phase as parts of a path: the one that ends last is followed to its beginning, then the one before it."""

from sim.results.critical_path import FileSpan, PathKind, file_parts


def parts(files, begin_ns=0, end_ns=100):
    found = file_parts(
        [FileSpan(i, *span) for i, span in enumerate(files)], begin_ns, end_ns, 7, PathKind.ASYNC_WORK, PathKind.UPLOAD
    )
    return [(part.kind.value, part.begin_ns, part.end_ns, part.file) for part in reversed(found)]


def test_without_files_all_of_it_is_work():
    assert parts([]) == [("async work", 0, 100, -1)]


def test_files_one_after_the_other():
    """Nothing lies between them."""
    assert parts([(0, 40), (40, 100)]) == [("upload", 0, 40, 0), ("upload", 40, 100, 1)]


def test_of_files_side_by_side_the_last_to_end_counts():
    assert parts([(0, 40), (0, 100), (10, 90)]) == [("upload", 0, 100, 1)]


def test_work_before_between_and_behind_files():
    expected = [
        ("async work", 0, 10, -1),
        ("upload", 10, 40, 0),
        ("async work", 40, 60, -1),
        ("upload", 60, 90, 1),
        ("async work", 90, 100, -1),
    ]

    assert expected == parts([(10, 40), (60, 90)])


def test_a_file_begun_before_the_phase_counts_from_there():
    """The upload of a changelog, or of a file that an aborted checkpoint left."""
    assert parts([(10, 100)], begin_ns=50) == [("upload", 50, 100, 0)]


def test_a_file_that_is_never_durable_is_awaited_to_the_end():
    assert parts([(30, None)]) == [("async work", 0, 30, -1), ("upload", 30, 100, 0)]
