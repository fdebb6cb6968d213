"""Conversion of functions with described options into typer commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from sim.app.cli.errors import Code, UserError, speaking
from sim.app.verbs.options import Option, options_of

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
                if not option.is_for_python:
                    add(name, kind, option, option.default)
        elif described and isinstance(described[0], Option):
            add(parameter.name, get_args(parameter.annotation)[0], described[0], parameter.default)
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))

    def run(**given: Any) -> None:
        with speaking():
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
            from sim.studies.traces.anywhere import must_be_spark

            must_be_spark(master, conf)
        return None
    if jobs is not None:
        raise UserError("--jobs and --master exclude each other", Code.USAGE)
    from sim.studies.sweeps.spark_masters import checked

    return checked(master, conf or ())
