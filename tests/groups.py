"""Tests of one `xdist_group` run in one process: what is dear is started once, a JVM, a Flink, a table of published cells."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """pytest-xdist 3.8 writes the group behind `_nodeid`, and pytest since 9.2 reads `_id`: both processes had a part of each group."""
    for item in items:
        name = getattr(item, "_nodeid", item.nodeid)
        if name != item.nodeid:
            item._id = type(item._id).parse(name)
