"""Describes the endpoints of a server as an OpenAPI document."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from hermes import __version__
from hermes.surfaces.web.endpoint import Endpoint, Nothing

_REF = "#/components/schemas/{name}"
_TOKEN_OR_COOKIE: list[dict[str, list[str]]] = [{"token": []}, {"cookie": []}]
_FAILURE = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "hint": {"type": "string"}},
    "required": ["error", "hint"],
}


def describe(endpoints: Sequence[Endpoint], title: str) -> dict[str, Any]:
    """Returns the document. A WebSocket is described as the GET request that opens it."""
    types: set[Any] = {
        kind
        for one in endpoints
        for kind in (one.query, one.body, one.answer)
        if _is_struct(kind)
    }
    ordered = sorted(types, key=lambda kind: str(kind.__name__))
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        method = "get" if one.method == "WEBSOCKET" else one.method.lower()
        paths.setdefault(re.sub(r":\w+}", "}", one.path), {})[method] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Failure": _FAILURE},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "hermes"},
            },
        },
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": one.summary,
        "x-scope": one.need,
        "parameters": [*_path_parameters(one.path), *_query_parameters(one.query)],
        "responses": {
            "200": {"description": "The result."},
            "default": {
                "description": "What went wrong, and what to do.",
                "content": _json({"$ref": _ref("Failure")}),
            },
        },
    }
    if one.method == "WEBSOCKET":
        operation["responses"]["101"] = {"description": "A WebSocket."}
        del operation["responses"]["200"]
    elif _is_struct(one.answer):
        operation["responses"]["200"]["content"] = _json(
            {"$ref": _ref(one.answer.__name__)}
        )
    if one.need != "open":
        operation["security"] = _TOKEN_OR_COOKIE
    if one.body is not None:
        operation["requestBody"] = {"content": _json({"$ref": _ref(one.body.__name__)})}
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)(?::\w+)?}", path)
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


def _query_parameters(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    if kind is Nothing:
        return []
    schema = next(
        iter(msgspec.json.schema_components([kind], ref_template=_REF)[1].values())
    )
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _ref(name: str) -> str:
    return _REF.format(name=name)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
