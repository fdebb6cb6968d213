"""Typer commands from functions with described options, and the overview that `ckptsim --help` prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer import Typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from sim.app.cli.errors import Code, UserError, errors_as_messages
from sim.app.verbs.options import Option, options_of
from sim.model.frozen import frozen

_METAVARS = ((bool, " "), (int, "N"), (Path, "PATH"))
"""Metavars of options that have none of their own; a switch takes no value."""


def argument(metavar: str, what: str) -> Any:
    """Return the typer argument with this metavar and help text."""
    return typer.Argument(metavar=metavar, help=what, show_default=False)


def command(function: Callable[..., Code | None]) -> Callable[..., None]:
    """Wrap a function as a typer command.

    Each key of ``**options: Unpack[...]`` becomes an option, exceptions become messages, and the returned Code becomes
    the exit code.
    """
    parameters: list[inspect.Parameter] = []
    defaults: dict[str, Any] = {}

    def add(name: str, kind: Any, option: Option, default: Any) -> None:
        defaults[name] = default
        is_shown = default not in (None, (), True, False, ...)
        metavar = option.metavar or next((word for type_, word in _METAVARS if type_ in (kind, *get_args(kind))), None)
        shown = typer.Option(
            *option.flags(name), metavar=metavar, help=option.help, min=option.min, show_default=is_shown
        )
        given = {} if default is ... else {"default": default or None if default == () else default}
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, keyword, annotation=Annotated[kind, shown], **given))

    parameters_of_function = inspect.signature(function, eval_str=True).parameters.values()
    for parameter in sorted(parameters_of_function, key=lambda parameter: parameter.name == "as_json"):
        described = getattr(parameter.annotation, "__metadata__", ())
        if parameter.kind is parameter.VAR_KEYWORD:
            for name, (kind, option) in options_of(get_args(parameter.annotation)[0]).items():
                add(name, kind, option, option.default)
        elif described and isinstance(described[0], Option):
            add(parameter.name, get_args(parameter.annotation)[0], described[0], parameter.default)
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))

    def run(**given: Any) -> None:
        with errors_as_messages():
            values = {name: _value(name, value, given) for name, value in given.items()}
            if code := function(
                **{
                    name: defaults.get(name) if value is None or value == [] else value
                    for name, value in values.items()
                }
            ):
                raise typer.Exit(code)

    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def _value(name: str, value: Any, values: Mapping[str, Any]) -> Any:
    """Convert a value parsed by typer to the value that the Python function takes."""
    match name:
        case "conf":
            return _spark_settings(values["master"], value, values.get("jobs"))
        case "headers":
            return dict(map(_header, value)) if value else None
        case _:
            return value


def _header(line: str) -> tuple[str, str]:
    """Split ``NAME: VALUE``."""
    name, colon, value = line.partition(":")
    if not colon or not name.strip() or not line.isprintable() or not line.isascii():
        raise UserError("--header: write 'NAME: VALUE'", Code.USAGE)
    return name.strip(), value.strip()


def _spark_settings(master: str | None, conf: Sequence[str] | None, jobs: int | None) -> dict[str, str] | None:
    """Return the validated settings of --conf, or None if Spark is not used.  UserError: options that conflict."""
    if master in (None, "here"):
        if conf:
            from sim.studies.traces.conversion import must_be_spark

            must_be_spark(master, conf)
        return None
    if jobs is not None:
        raise UserError("--jobs and --master exclude each other", Code.USAGE)
    from sim.studies.sweeps.spark_masters import checked

    return checked(master, conf or ())


# ---- The verbs, and the overview that `ckptsim --help` prints: grouped by task, on one screen of 80 columns and 24 lines.

_WIDTH = 79
_USAGE = 2
"""Exit code of usage errors."""


_SIDE_BY_SIDE = "ckptsim diff A B, or ckptsim run FILE for the lists of a scenario"
INSTEAD = {
    "compare": _SIDE_BY_SIDE,
    "simulate": "ckptsim run FILE",
    "plot": "ckptsim report RESULTS -o FILE",
    "new": "ckptsim init NAME",
    "--spark": "--master 'local[*]' or spark://HOST:PORT",
    "--output": "--out",
    "--axis": "--set KEY='[V1, V2]'",
    "--seed": "--set run.seed=N",
    "--parallelism": "--jobs, or --set job.VERTEX.parallelism=N",
}
"""Verbs and options of other tools that users try -> the equivalent here."""


class Purpose(Enum):
    """Task groups of the overview: their titles, in the order in which they are printed."""

    BEGIN = "Get started"
    JOB = "My own job"
    WHY = "See why"
    SWEEP = "Many runs"
    TRUST = "Accuracy"
    LOOK = "Look up"


@frozen
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
            added = app.command(self.name, cls=VerbCommand, rich_help_panel=self.purpose.value, short_help=self.summary)
            added(command(self.runs))


class VerbCommand(TyperCommand):
    """Command whose help shows no Python types, e.g. ``<list[Path]>``, next to the names of arguments and ``--help``."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)
        for parameter in parameters:
            if isinstance(parameter, TyperArgument) or "--help" in parameter.opts:
                parameter.display_type_rich = lambda ctx: None
        return parameters


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
                    if f"'{name}'" in str(getattr(error, "message", ""))
                    or name == getattr(error, "option_name", "")  # an unknown option
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
            f"Usage: {ctx.command_path} COMMAND [OPTIONS]      (see {ctx.command_path} COMMAND --help)",
            str(self.help),
            "",
        ]
        print("\n".join([*head, *rows, f"{'Options':{left}}  {'  '.join(options)}", str(self.epilog)]))
