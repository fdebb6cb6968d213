"""Pages of reference, written from what the code itself says: schemas, the command's help, columns of tables, the gallery of answers.

`docs/site.py` puts them into the site; nothing of them is kept in the repository.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.model.options import Option

__all__ = [
    "PAGES",
    "command_page",
    "gallery_pages",
    "keys_page",
    "python_page",
    "scenario_page",
    "sweep_page",
    "tables_page",
]

ROOT = Path(__file__).parent.parent
SWEEPS = ROOT / "scenarios" / "sweeps"
EXCERPTS = ROOT / "tests" / "data" / "excerpts"


def scenario_page() -> str:
    """Every key of a scenario file."""
    from sim.model.schema.flink_keys import document_options
    from sim.model.schema.reference import json_schema

    options = {(key.section.__name__, key.path[-1]): key.record for key in document_options() if key.record is not None}
    text = "A list of values is a sweep axis, where the table says *axis*."
    return keys_page("Keys of a scenario", text, json_schema(), options)


def sweep_page() -> str:
    """Every key of a sweep file."""
    from sim.model.schema.reference import json_schema
    from sim.studies.sweeps.design import SweepDocument

    return keys_page(
        "Keys of a sweep file", "`ckptsim sweep FILE` runs it.", json_schema(SweepDocument, "ckptsim sweep")
    )


def keys_page(
    title: str, text: str, schema: Mapping[str, Any], options: Mapping[tuple[str, str], Option] | None = None
) -> str:
    """A section for the file and one for each mapping within it.  `options`: by section and key, if any say defaults and Flink's keys."""
    from sim.model.schema.reference import default_text

    sections = [
        ("The file", "", schema),
        *((name, str(part.get("description", "")), part) for name, part in schema["$defs"].items()),
    ]
    lines = [f"# {title}", "", text, ""]
    for name, description, part in sections:
        if not part.get("properties"):
            continue
        required = set(part.get("required", ()))
        of_section = {key: option for (section, key), option in (options or {}).items() if section == name}
        columns = ["key", "meaning", "values", "default", *(["Flink"] if of_section else [])]
        lines += [f"## {name}", "", _cell(description), "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for key, value in part["properties"].items():
            option = of_section.get(key)
            row = f"{_row(key, value)} {_cell(default_text(value, option, is_required=key in required))} |"
            flink = ", ".join(f"`{name.name}`" for name in option.flink) if option is not None else ""
            lines.append(f"{row} {flink} |" if of_section else row)
        lines.append("")
    return "\n".join(lines)


def _row(key: str, value: Mapping[str, Any]) -> str:
    found = list(dict.fromkeys(_values(value)))
    axis = " *axis*" if any(part.get("type") == "array" for part in value.get("oneOf", ())) else ""
    return f"| `{key}` | {_cell(str(value.get('description', '')))} | {', '.join(found)}{axis} |"


def _values(value: Mapping[str, Any]) -> Iterator[str]:
    """What may stand there: names, examples, another section, or its type."""
    for part in (*value.get("oneOf", ()), *value.get("anyOf", ())):
        yield from _values(part)
    if "$ref" in value:
        name = str(value["$ref"]).rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "enum" in value:
        yield from (f"`{text}`" for text in value["enum"] if isinstance(text, str))
    elif "examples" in value:
        yield from (f"`{text}`" for text in value["examples"])
    elif value.get("type") == "array":
        yield from _values(value.get("items", {}))
    elif value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        yield "a mapping"
        yield from _values(value["additionalProperties"])
    elif isinstance(value.get("type"), str):
        yield {"integer": "a whole number", "number": "a number", "string": "text"}.get(
            value["type"], str(value["type"])
        )


def command_page() -> str:
    """What `--help` says, verb by verb."""
    command = [
        sys.executable,
        "-m",
        "typer",
        "sim.app.cli",
        "utils",
        "docs",
        "--name",
        "ckptsim",
        "--title",
        "The command",
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text.replace("<int range>", "INTEGER")


def tables_page() -> str:
    """Columns of all result tables."""
    from sim.studies.cells import described

    lines = [
        "# Columns of the tables",
        "",
        "`ckptsim schema --results` prints this. `x_` begins the names of columns that Flink does not have.",
        "",
    ]
    for name, rows in described().items():
        lines += [f"## {name}", "", "| column | unit | meaning |", "|---|---|---|"]
        lines += [f"| `{column}` | {_cell(unit)} | {_cell(meaning)} |" for column, unit, meaning in rows]
        lines.append("")
    return "\n".join(lines)


def python_page() -> str:
    """The public names of the package, which mkdocstrings fills from docstrings, and the options of each function."""
    import sim

    lines = ["# From Python", "", "::: sim", ""]
    for name in sim.__all__:
        _, _, options = (inspect.getdoc(getattr(sim, name)) or "").partition("\n\nOptions:\n")
        if options:
            named = (line.strip().partition(": ") for line in options.splitlines())
            lines += [f"## Options of sim.{name}", "", "| keyword | meaning |", "|---|---|"]
            lines += [*(f"| `{keyword}` | {_cell(meaning)} |" for keyword, _, meaning in named), ""]
    return "\n".join(lines)


def gallery_pages() -> dict[str, str]:
    """Place in the site -> text: ready sweeps with their answers, ready scenarios with theirs."""
    pages = {}
    links = []
    for path in sorted(SWEEPS.glob("*.md")):
        if path.stem == "README":
            continue
        text = path.read_text(encoding="utf-8")
        source = path.with_suffix(".yaml").read_text(encoding="utf-8")
        pages[f"gallery/{path.stem}.md"] = (
            f"{text}\n\n## The sweep file\n\n`scenarios/sweeps/{path.stem}.yaml`:\n\n```yaml\n{source}```\n"
        )
        links.append(f"* [{text.partition(chr(10))[0].removeprefix('# ')}]({path.stem}.md): {_question(source)}")
    lines = [
        "# Ready answers",
        "",
        "Sweeps over real traces, each with its answer and what to do about it:",
        "",
        *links,
        "",
    ]
    lines += [
        "Scenarios that stay as they are, with a part of what `ckptsim run` says about them (a test holds it word for word):",
        "",
    ]
    for path in sorted(EXCERPTS.glob("*.txt")):
        source = (ROOT / "scenarios" / f"{path.stem}.yaml").read_text(encoding="utf-8")
        question = _question(source)
        body = f"# {path.stem}\n\n{question}\n\n```yaml\n{source}```\n\n`ckptsim run scenarios/{path.stem}.yaml` says, among other things:\n\n"
        pages[f"gallery/{path.stem}.md"] = f"{body}```\n{path.read_text(encoding='utf-8').rstrip()}\n```\n"
        lines.append(f"* [{path.stem}]({path.stem}.md): {question}")
    return {"gallery/index.md": "\n".join(lines) + "\n", **pages}


PAGES = {
    "reference/scenario.md": scenario_page,
    "reference/sweep.md": sweep_page,
    "reference/command.md": command_page,
    "reference/tables.md": tables_page,
    "reference/python.md": python_page,
}
"""Place in the site -> who writes it."""


def _question(source: str) -> str:
    """The first comment that is no word to an editor."""
    return next(
        line.removeprefix("#").strip()
        for line in source.splitlines()
        if line.startswith("#") and "yaml-language-server" not in line
    )


def _cell(text: str) -> str:
    """Text in a cell of a table; what looks like a tag or a column is shown as it is."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()
