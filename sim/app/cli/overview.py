"""The verbs of the command, and its help: they are grouped by task, on one screen of 80 columns and 24 lines."""

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
"""The exit code of mistakes in a command line."""


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
"""Names of verbs and options that people try, and what does it."""


class Purpose(Enum):
    """A purpose that verbs serve, in the words and in the order of the overview."""

    BEGIN = "Begin"
    JOB = "My own job"
    WHY = "See why"
    SWEEP = "Many runs"
    TRUST = "Trust"
    LOOK = "Look up"


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command.  Each file of `sim.app.cli` defines one."""

    name: str
    purpose: Purpose
    place: int  # among the verbs of its purpose
    summary: str  # in the overview
    runs: (
        Callable[..., Any] | Typer
    )  # the options and the exit code of a function are those of the command; of a group its verbs

    @property
    def order(self) -> tuple[int, int]:
        """The place among all verbs of the overview."""
        return list(Purpose).index(self.purpose), self.place

    def add_to(self, app: Typer) -> None:
        """The command has this verb from now on."""
        if isinstance(self.runs, Typer):
            app.add_typer(self.runs, name=self.name, rich_help_panel=self.purpose.value, short_help=self.summary)
        else:
            app.command(self.name, rich_help_panel=self.purpose.value, short_help=self.summary)(command(self.runs))


class Overview(TyperGroup):
    """The overview of the verbs, grouped by task (`rich_help_panel`), in the order in which they were added."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb.  An option or a verb that there is not may be known by another name."""
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
        print("\n".join([*head, *rows, "", f"{'Options':{left}}  {'  '.join(options)}", str(self.epilog)]))


def _option(error: Exception) -> str:
    """The option that a command does not have; empty: the error is another one."""
    return str(getattr(error, "option_name", ""))
