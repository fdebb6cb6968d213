"""Descriptions of keys stand in the schema, though no class of a section reads them as it is made."""

from pydantic import create_model

from sim.scenario.grammar.section import Section


class Plain(Section):
    """A section."""

    size: int
    """How large it is,
    in bytes.
    """
    silent: int
    from_: int
    """Where it begins."""


class Longer(Plain):
    """A section that has the keys of another one."""

    last: int
    """Where it ends."""


PLAIN = {"size": "How large it is,\nin bytes.", "silent": None, "from": "Where it begins."}


def descriptions(section):
    return {key: field.get("description") for key, field in section.model_json_schema()["properties"].items()}


def test_the_text_below_a_key_is_its_description():
    assert PLAIN == descriptions(Plain)


def test_a_key_that_is_passed_on_keeps_its_description():
    assert {**PLAIN, "last": "Where it ends."} == descriptions(Longer)


def test_a_class_without_a_text_has_a_schema():
    assert {**PLAIN, "more": None} == descriptions(create_model("Made", __base__=Plain, more=(int, ...)))


def test_a_class_of_a_prompt_has_a_schema():
    names = {"Section": Section, "__name__": "__console__"}
    exec("class Typed(Section):\n    size: int\n    'How large it is.'", names)

    assert {"size": None} == descriptions(names["Typed"])


def test_sections_are_made_without_their_source():
    """Reading it took a third of the time that sections take, in every command."""
    assert not Plain.model_config.get("use_attribute_docstrings")
    assert all(field.description is None for field in Plain.model_fields.values())
