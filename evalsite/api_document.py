"""What the API's document says of every operation alike: a summary, how it refuses, an example of what it takes."""

import re
from typing import Any

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme

from accounts.rules import RULES, rule_of_action

JSON = dict[str, Any]
DETAIL = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
BY_FIELD = {
    "type": "object",
    "description": "Sentences by the name of the field they are about; `detail` where they are about none.",
    "additionalProperties": {},
}
REFUSALS = {
    "400": "Something asked for cannot be understood, said at its field.",
    "401": "The token is unknown, was revoked or has ended.",
    "403": "This account may not do this, its token lacks the scope, or nobody is signed in.",
    "404": "There is nothing here that this account may see.",
    "409": "What is there now does not allow this.",
    "429": "Too many requests. `Retry-After` says how long to wait.",
}
WRITES = ("post", "put", "patch", "delete")
OPERATIONS = ("get", *WRITES)
IN_WORDS = {"string": "text", "boolean": "true or false"}
FIELDS_IN_EXAMPLE = 3  # of a body, or as many as are required


class TokenScheme(KnoxTokenScheme):
    """Says at each operation which scope a token needs for it."""

    target_class = "accounts.tokens.TokenAuthentication"

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[str]]:
        view = auto_schema.view
        rule = rule_of_action(view, getattr(view, "action", None))
        return {str(self.name): [RULES[rule].scope.value] if rule else []}


def complete(result: JSON, generator: Any, request: Any, public: bool) -> JSON:
    """The document with what all operations have in common. A hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    schemas["Refusal"] = DETAIL
    schemas["Faults"] = BY_FIELD
    _any_of(result)
    for operations in result["paths"].values():
        for method in OPERATIONS:
            if operation := operations.get(method):
                _complete(operation, method)
                body = operation.get("requestBody", {}).get("content", {}).get("application/json")
                if body and (value := example(body["schema"], schemas)):
                    body.setdefault("example", value)
    return result


def _refusals(operation: JSON, method: str) -> set[str]:
    """The statuses with which an operation may refuse."""
    statuses = {"401", "403", "404", "429"}  # 404: an unknown cursor or format, too
    if operation.get("parameters") or "requestBody" in operation:
        statuses.add("400")
    if method in WRITES:
        statuses.add("409")
    return statuses


def _complete(operation: JSON, method: str) -> None:
    description = " ".join(operation.get("description", "").split())
    first = re.split(r"(?<=[.:]) ", description)[0].rstrip(".:")
    operation.setdefault("summary", first or operation["operationId"].replace("_", " ").capitalize())
    scopes = [scope for needed in operation["security"] for scope in needed.get(str(TokenScheme.name), ())]
    operation["description"] = f"{operation.get('description', '')}\n\nA token needs the scope `{scopes[0]}`.".strip()
    given = operation["responses"].get("200", {}).get("content", {})
    texts = [media for media in given if media.startswith(("text/", "application/jsonl"))]  # refusals come so, too
    for status in sorted(_refusals(operation, method) - operation["responses"].keys()):
        name = "Faults" if status == "400" else "Refusal"
        schema = {"$ref": f"#/components/schemas/{name}"}
        content = {"application/json": {"schema": schema}}
        content |= {media: {"schema": {"type": "string"}} for media in texts}
        operation["responses"][status] = {"description": REFUSALS[status], "content": content}


def _any_of(part: Any) -> None:
    """Choices without a discriminator overlap: any of them will do."""
    if isinstance(part, dict):
        if "oneOf" in part and "discriminator" not in part:
            part["anyOf"] = part.pop("oneOf")
        for inner in part.values():
            _any_of(inner)
    elif isinstance(part, list):
        for inner in part:
            _any_of(inner)


def resolved(schema: JSON, schemas: JSON) -> JSON:
    """The schema that a reference or a choice of schemas leads to."""
    for choice in ("allOf", "oneOf", "anyOf"):
        if choice in schema:
            return resolved(schema[choice][0], schemas)
    name = schema.get("$ref", "").rpartition("/")[2]
    return resolved(schemas[name], schemas) if name else schema


def fields_in(body: JSON) -> JSON:
    """The fields that may be sent."""
    return {name: field for name, field in body.get("properties", {}).items() if not field.get("readOnly")}


def kind_of(field: JSON, schemas: JSON) -> str:
    """The type of a field in words: ``list of number``, ``text or null``, ``first | second | tie``."""
    inner = resolved(field, schemas)
    kinds: list[str] = [inner.get("type", "anything")] if not isinstance(inner.get("type"), list) else inner["type"]
    words = " or ".join(IN_WORDS.get(kind, kind) for kind in kinds)
    if inner.get("enum"):
        words = " | ".join([str(value) for value in inner["enum"] if value is not None])
    elif "array" in kinds:
        words = f"list of {kind_of(inner.get('items', {}), schemas)}"
    can_be_null = any(choice == {"type": "null"} for choice in (*field.get("oneOf", ()), *field.get("anyOf", ())))
    return f"{words} or null" if can_be_null else words


def example(schema: JSON, schemas: JSON) -> JSON:
    """The required fields of a body, then its first fields, each with a value of the right kind."""
    body = resolved(schema, schemas)
    fields = fields_in(body)
    needed = [name for name in fields if name in body.get("required", ())]
    others = [name for name in fields if name not in needed]
    names = needed + others[: max(0, FIELDS_IN_EXAMPLE - len(needed))]
    return {name: _value(fields[name], schemas) for name in names}


def _value(schema: JSON, schemas: JSON) -> Any:
    schema = resolved(schema, schemas)
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        return [_value(schema["items"], schemas)] if schema.get("items") else []
    values: JSON = {"integer": 1, "number": 0.5, "boolean": True, "object": {}}
    return values.get(str(kind), "…")
