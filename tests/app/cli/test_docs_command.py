"""`ckptsim docs` has the pages of the documentation, where the package is installed as well."""

from typer.testing import CliRunner

from sim.app.cli import app, references
from tests.places import ROOT


def printed(*words):
    return CliRunner().invoke(app, ["docs", *words])


def test_a_page_by_its_name_and_by_the_path_that_messages_have(monkeypatch, tmp_path):
    page = (ROOT / "docs/truth.md").read_text()

    assert printed("truth").output == printed("docs/truth.md#sources").output == page
    assert "your-own-job" in printed().output
    assert "Watch a checkpoint" in printed().output
    assert printed("truths").exit_code == 2
    assert "pages: adding" in printed("truths").output

    (tmp_path / "only.md").write_text("# The only page\n")
    monkeypatch.setattr(references, "_PAGES", tmp_path)

    assert "The only page" in printed().output


def test_the_wheel_brings_the_pages():
    """`tests/test_package.py` builds it."""
    assert 'sources = { "docs" = "sim/docs" }' in (ROOT / "pyproject.toml").read_text()
    assert "COPY docs ./docs" in (ROOT / "Dockerfile").read_text()
