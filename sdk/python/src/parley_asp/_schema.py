"""The author's model as a terms schema, which the broker checks offers by (PROTOCOL.md section 4)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ._json import JSON

_DECIMAL = r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"


class _Generator(GenerateJsonSchema):
    """Says a Decimal as a number or its text. Some versions of pydantic say it by a pattern that RE2 does not know."""

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        said = super().decimal_schema(schema)
        for one in said.get("anyOf", [said]):
            if one.get("type") == "string":
                one["pattern"] = _DECIMAL
        return said


def schema_of(model: type[BaseModel]) -> JSON:
    """The JSON Schema of what a model reads."""
    return model.model_json_schema(schema_generator=_Generator)
