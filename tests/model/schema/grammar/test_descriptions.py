"""Descriptions of keys stand in the schema, though no class of a section reads them as it is made."""

from pydantic import create_model

from sim.model.schema.sections import Section


class Plain(Section):
    """A section."""

    size: int
    """How large it is,
    in bytes.
    """
    silent: int
    from_: int
    """Where it begins."""


PLAIN = {"size": "How large it is,\nin bytes.", "silent": None, "from": "Where it begins."}


def descriptions(section):
    return {key: field.get("description") for key, field in section.model_json_schema()["properties"].items()}


def test_the_text_below_a_key_is_its_description():
    assert descriptions(Plain) == PLAIN


def test_a_class_without_a_text_has_a_schema():
    assert descriptions(create_model("Made", __base__=Plain, more=(int, ...))) == {**PLAIN, "more": None}


def test_a_class_of_a_prompt_has_a_schema():
    names = {"Section": Section, "__name__": "__console__"}
    exec("class Typed(Section):\n    size: int\n    'How large it is.'", names)

    assert descriptions(names["Typed"]) == {"size": None}


def test_sections_are_made_without_their_source():
    """Reading it took a third of the time that sections take, in every command."""
    assert not Plain.model_config.get("use_attribute_docstrings")
    assert all(field.description is None for field in Plain.model_fields.values())
