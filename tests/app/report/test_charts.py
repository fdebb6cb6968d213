"""A tidy table becomes the description of a chart, and the library that draws it is the one that was noted."""

import gzip
import json
from hashlib import sha256
from importlib.resources import files

import pytest

from sim.results.charts import SHAPES, ChartAxis, Panel, make_chart, to_figure, to_json

LIBRARY = "31eac45532def0b91209b6a07f278ffcf29bcb69e28771db4929fb344486761d"
"""The hash of the unpacked bundle; `make charts` prints it."""
FREE = Panel("it", ChartAxis(), ChartAxis())


def test_the_library_is_the_one_that_was_noted():
    packed = (files("sim.results") / "echarts.min.js.gz").read_bytes()
    licences = (files("sim.results") / "LICENCES.txt").read_text()

    assert sha256(gzip.decompress(packed)).hexdigest() == LIBRARY
    assert b"</script" not in gzip.decompress(packed)
    for part in ("echarts 6.1.0", "zrender 6.1.0", "tslib 2.3.0", "Apache License", "BSD 3-Clause", "d3.js"):
        assert part in licences
    assert len(packed) < 250_000


def test_marks_are_described_by_panel_series_and_shape():
    rows = [
        {"series": "a", "shape": "line", "x": 0, "y": 1.23456789},
        {"series": "a", "shape": "line", "x": 1, "y": float("nan")},
        {"series": "b", "shape": "box", "x": 0, "y": 1, "x2": 2, "y2": 3, "text": "four"},
        {"panel": 1, "series": "a", "shape": "point", "x": 0, "y": 2e9},
    ]
    found = to_json(make_chart(rows, [FREE, FREE], colours={"b": 5}))

    assert [(row["panel"], row["name"], row["shape"], row["colour"]) for row in found["series"]] == [
        (0, "a", "line", 0),
        (0, "b", "box", 5),
        (1, "a", "point", 0),
    ]
    assert found["series"][0]["marks"] == [[0, 1.23457], [1]]
    assert found["series"][1]["marks"] == [[0, 1, 2, 3, "four"]]
    assert "NaN" not in json.dumps(found, allow_nan=False)


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="unknown shape pie: expected band, box"):
        make_chart([{"shape": "pie"}], [FREE])


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_a_still_picture(shape):
    """One that is forgotten would be missing on paper only."""
    row = {
        "series": "a",
        "shape": shape,
        "x": 1.0,
        "y": 1.0,
        "x2": 2.0,
        "y2": 2.0,
        "text": "c",
    }
    (axes,) = to_figure(make_chart([row], [Panel("it", ChartAxis(low=0, high=3), ChartAxis(low=0, high=3))])).axes

    assert [*axes.lines, *axes.patches, *axes.collections, *axes.texts]


def test_a_browser_knows_every_shape():
    script = (files("sim.results") / "browser.js").read_text()

    assert [shape for shape in SHAPES if f'"{shape}"' not in script] == []


def test_long_names_of_rows_stand_above_them():
    """Beside them there is no room."""
    rows = [{"series": "a", "x": 1.0, "y": 0.0}]
    name = "a name that is too long to stand beside its row"
    (axes,) = to_figure(make_chart(rows, [Panel("", ChartAxis(), ChartAxis(names=(name,)))])).axes

    assert [name] == [text.get_text() for text in axes.texts]
    assert list(axes.get_yticks()) == []
