"""The help of the command itself: verbs grouped by task, on one screen of 80 columns and 24 lines."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_WIDTH = 79


class Overview(TyperGroup):
    """The overview of the verbs, grouped by task (`rich_help_panel`), in the order in which they were added."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        verbs = [verb for name in self.list_commands(ctx) if (verb := self.get_command(ctx, name)) is not None and not verb.hidden]
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
        head = [f"Usage: {ctx.command_path} VERB ...      ({ctx.command_path} VERB --help says the rest)", str(self.help), ""]
        print("\n".join([*head, *rows, "", f"{'Options':{left}}  {'  '.join(options)}", str(self.epilog)]))
