"""Things that can be added, there until a block ends: records of catalogs, keys of sections, kinds of storage."""

from contextlib import ExitStack, contextmanager

from sim.model.catalogs import ADDITIONS
from sim.model.options import attribute_of, options_of
from sim.model.schema.document import Storage
from sim.model.schema.sections import add_key, annotation_of, rebuild, section_of
from sim.model.storage import STORAGES


@contextmanager
def added(catalog, record):
    """The catalog has the record."""
    try:
        yield catalog.add(record)
    finally:
        del catalog._records[record.name]
        ADDITIONS[0] += 1


@contextmanager
def with_key(section, key, annotation):
    """The section has the key."""
    add_key(section, key, annotation)
    try:
        yield
    finally:
        del section.__pydantic_fields__[key.replace("-", "_")]
        rebuild(section)


@contextmanager
def with_options(section, model):
    """`section` has the options of `model` instead of those of the dataclass that `model` extends."""
    before = next(made for made in section.OPTIONS if issubclass(model, made))
    records = {attribute_of(record.key): record for record in options_of(model).values()}
    own, section.OPTIONS = (
        section.OPTIONS,
        {model if made is before else made: found for made, found in section.OPTIONS.items()},
    )
    section.OPTIONS[model] = records
    try:
        with ExitStack() as keys:
            for attribute in records.keys() - own[before].keys():
                keys.enter_context(with_key(section, records[attribute].key, annotation_of(records[attribute])))
            yield
    finally:
        section.OPTIONS = own


@contextmanager
def with_storage(kind):
    """Scenarios may have this kind of storage, too."""
    with added(STORAGES, kind), with_key(Storage, kind.name, section_of(kind.options)):
        yield
