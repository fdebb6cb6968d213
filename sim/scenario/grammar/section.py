"""The base of every mapping of a scenario document: which keys it knows, and what it says about others."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, ValidationInfo, model_validator

from sim.scenario.text.plain import Mapping
from sim.scenario.text.problems import Reading, did_you_mean

__all__ = ["MAP_OR_TEXT", "Section", "Words"]

Words = dict[str, str]


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """One mapping of the file.  Unknown, empty and not yet modelled keys are told where they stand, all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_key, use_attribute_docstrings=True)

    LATER: ClassVar[Words] = {}
    """Keys that are known but not modelled yet, and what they will mean."""
    HINTS: ClassVar[Words] = {}
    """Keys that are often looked for here, and where they stand."""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or not isinstance(info.context, Reading):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in data.items():
            here = (*data.path, key)
            if key in cls.LATER:
                info.context.wrong(here, f"known but not modelled yet ({cls.LATER[key]}): remove it")
            elif key not in known:
                hint = did_you_mean(key, known) or f"; known keys are {', '.join(sorted(known))}"
                hint = f": {cls.HINTS[key]}" if key in cls.HINTS else hint
                info.context.wrong(here, f"unknown key '{key}'{hint}")
            elif value is None:
                info.context.wrong(here, "has no value: write one or remove the key")
        return {key: value for key, value in data.items() if key in known and value is not None}


def _map_or_text(value: object) -> str:
    return "map" if isinstance(value, (dict, BaseModel)) else "text"


MAP_OR_TEXT = Discriminator(_map_or_text)
"""Chooses between the branches tagged "map" and "text", so that only the mistakes of one are told."""
