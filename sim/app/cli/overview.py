"""The verbs, and the overview that `ckptsim --help` prints: grouped by task, on one screen of 80 columns and 24 lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from typer import Typer
from typer.core import TyperGroup

from sim.app.cli.options import command

_WIDTH = 79
_USAGE = 2
"""Exit code of usage errors."""


_SIDE_BY_SIDE = "ckptsim diff A B, or ckptsim run FILE for the lists of a scenario"
INSTEAD = {
    "compare": _SIDE_BY_SIDE,
    "simulate": "ckptsim run FILE",
    "plot": "ckptsim report RESULTS -o FILE, or run --picture",
    "new": "ckptsim init NAME",
    "--spark": "--master 'local[*]' or spark://HOST:PORT",
    "--output": "--out",
    "--parallelism": "--jobs, or --set job.VERTEX.parallelism=N",
}
"""Verbs and options of other tools that users try -> the equivalent here."""


class Purpose(Enum):
    """Task groups of the overview: their titles, in the order in which they are printed."""

    BEGIN = "Begin"
    JOB = "My own job"
    WHY = "See why"
    SWEEP = "Many runs"
    TRUST = "Accuracy"
    LOOK = "Look up"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command, defined as a constant in a module of `sim.app.cli`."""

    name: str
    purpose: Purpose
    place: int  # position among the verbs of its purpose, from 1
    summary: str  # its line in the overview
    # a function, whose options and exit code become those of the command, or a group of subcommands
    runs: Callable[..., Any] | Typer

    @property
    def order(self) -> tuple[int, int]:
        """Return the sort key of the verb in the overview."""
        return list(Purpose).index(self.purpose), self.place

    def add_to(self, app: Typer) -> None:
        """Register the verb with the typer application."""
        if isinstance(self.runs, Typer):
            app.add_typer(self.runs, name=self.name, rich_help_panel=self.purpose.value, short_help=self.summary)
        else:
            app.command(self.name, rich_help_panel=self.purpose.value, short_help=self.summary)(command(self.runs))


class Overview(TyperGroup):
    """Command group whose help lists the verbs by task (`rich_help_panel`), in the order in which they were added."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb.  For an unknown verb or option that `INSTEAD` lists, add the equivalent to the error message."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            known = next(
                (
                    name
                    for name in INSTEAD
                    if f"'{name}'" in str(getattr(error, "message", "")) or name == _option(error)
                ),
                None,
            )
            if known is not None and getattr(error, "exit_code", None) == _USAGE:
                error.message = f"{error.message.rstrip('.')}; write {INSTEAD[known]}"  # type: ignore[attr-defined]
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        verbs = [
            verb
            for name in self.list_commands(ctx)
            if (verb := self.get_command(ctx, name)) is not None and not verb.hidden
        ]
        tasks: dict[str, list[Any]] = {}
        for verb in verbs:
            tasks.setdefault(str(getattr(verb, "rich_help_panel", None) or ""), []).append(verb)
        left, middle = max(map(len, tasks)), max(len(str(verb.name)) for verb in verbs)
        rest = _WIDTH - left - middle - 4
        rows = [
            f"{'' if i else task:{left}}  {verb.name:{middle}}  {verb.get_short_help_str(rest)}"
            for task, group in tasks.items()
            for i, verb in enumerate(group)
        ]
        options = [max(option.opts, key=len) for option in self.get_params(ctx) if not getattr(option, "hidden", False)]
        head = [
            f"Usage: {ctx.command_path} VERB ...      (see {ctx.command_path} VERB --help)",
            str(self.help),
            "",
        ]
        print("\n".join([*head, *rows, f"{'Options':{left}}  {'  '.join(options)}", str(self.epilog)]))


def _option(error: Exception) -> str:
    """Return the unknown option of a click error, or "" for any other error."""
    return str(getattr(error, "option_name", ""))
