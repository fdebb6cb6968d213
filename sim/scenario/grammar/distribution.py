"""Distributions: a value alone, or one by name with its mean; as they are written, and as the model has them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, Tag, create_model

from sim.model.job import Distribution
from sim.model.randomness.distributions import DISTRIBUTIONS, DistributionKind
from sim.scenario.grammar.fields import Axis, Duration, Number, Size
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts
from sim.scenario.text.problems import DocumentPath, Reading


class DurationSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Duration]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class SizeSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Size]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class Law(Section):
    """Exactly one distribution, by its name."""

    HINTS: ClassVar[Texts] = {"constant": "write the value alone, without a mapping", "normal": "write lognormal: {mean: ..., cv: ...}"}


def _mean(value: object) -> object:
    """The ends of a range look like a sweep axis."""
    if isinstance(value, list):
        another = "another range is not modelled, write erlang: {mean: ..., cv: ...}, and several means as a list of distributions"
        raise ValueError(f"expected the mean, not a list: values are from 0 to twice the mean; {another}")  # noqa: TRY004  # pydantic collects ValueErrors
    return value


def _section(name: str, sentence: str, mean: Any, spread: type[Section], kinds: list[DistributionKind]) -> Any:
    """A section with a key for each kind of distribution."""
    one_or_axis: Any = Axis
    axis, alone = one_or_axis[mean], Annotated[mean, BeforeValidator(_mean)]
    types: dict[str, Any] = {kind.name: spread if kind.most_cv else alone if kind.name == "uniform" else axis for kind in kinds}
    keys: dict[str, Any] = {
        kind.name.replace("-", "_"): (types[kind.name] | None, Field(None, description=kind.sentence)) for kind in kinds
    }
    return create_model(name, __base__=Law, __doc__=sentence, __module__=__name__, **keys)


DurationLaw = _section(
    "DurationLaw", "Exactly one of these distributions, by its name.", Duration, DurationSpread, list(DISTRIBUTIONS.values())
)
SizeLaw = _section(
    "SizeLaw", "Exactly one of these distributions, by its name.  A size that is drawn is at least 1 B, as every record has one.",
    Size, SizeSpread, [kind for kind in DISTRIBUTIONS.values() if kind.of_sizes],
)  # fmt: skip
DurationField = Annotated[Annotated[Duration, Tag("text")] | Annotated[DurationLaw, Tag("map")], MAP_OR_TEXT]  # type: ignore[valid-type]
SizeField = Annotated[Annotated[Size, Tag("text")] | Annotated[SizeLaw, Tag("map")], MAP_OR_TEXT]  # type: ignore[valid-type]


def law(given: int | Law | None, default: Distribution, here: DocumentPath, reading: Reading) -> Distribution:
    """The distribution that stands at `here`; mistakes go to `reading`."""
    if given is None:
        return default
    if isinstance(given, int):
        return Distribution(given)
    keys = {field.alias or name: name for name, field in type(given).model_fields.items()}
    named = {kind: value for kind, name in keys.items() if (value := getattr(given, name)) is not None}
    if len(named) != 1:
        *known, last = keys
        reading.wrong(here, f"write exactly one distribution: {', '.join(known)} or {last}")
        return default
    ((kind, value),) = named.items()
    if isinstance(value, int):
        return Distribution(value, kind)
    most = DISTRIBUTIONS[kind].most_cv
    if not 0 < value.cv <= most:
        reading.wrong((*here, kind, "cv"), f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean")
    return Distribution(value.mean, kind, float(value.cv))
