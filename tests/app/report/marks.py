"""Marks of a chart."""


def marks_of(chart, panel, shape):
    """The rows of one shape in a panel."""
    return chart.marks[(chart.marks["panel"] == panel) & (chart.marks["shape"] == shape)]
