"""Signing in at a remote server: OAuth 2.1 with discovery, dynamic registration, PKCE and a resource indicator.

`begin` returns the address for the person's browser, `finish` takes the address that the browser was sent back to.
Both can run in different processes. Every address that a server names must be https, or on this machine.
"""

import base64
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx2
import msgspec
from mcp.client.auth import utils
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.shared.auth import (
    OAuthClientMetadata,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from hermes import __version__
from hermes.mcp.http_server import LOOPBACK_HOSTS, LimitedTransport
from hermes.mcp.logins import OAuthClient, PendingLogin, ServerLogin, unix_now
from hermes.mcp.safe_text import ServerFailed, one_line
from hermes.oauth.pkce import Pkce
from hermes.text.translation import translator

t = translator(__name__)

_MAX_ANSWER_BYTES = 1024 * 1024
_REQUEST_TIMEOUT_S = 30.0
_PROBE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Discovered(msgspec.Struct, frozen=True):
    """What a server and its authorization server say about signing in."""

    metadata: OAuthMetadata
    resource: str
    scope: str


class LoginEnded(ServerFailed):
    """The authorization server no longer accepts the login; only the person can make another."""


class TokenAnswer(msgspec.Struct, frozen=True):
    """The answer of a token endpoint."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - a kind of token
    expires_in: float | None = None
    refresh_token: str = ""
    scope: str = ""


class _TokenError(msgspec.Struct, frozen=True):
    error: str = ""
    error_description: str = ""


async def begin(
    url: str, redirect_uri: str, state: str = ""
) -> tuple[PendingLogin, str]:
    """Prepares a login. Returns what `finish` needs, and the address that the person opens. Raises ServerFailed."""
    _require_secure(url)
    async with _client() as client:
        try:
            found = await _discover(client, url)
            registered = await _register(client, found, redirect_uri)
        except (OAuthFlowError, ValidationError) as error:
            raise ServerFailed(
                t.later("its sign-in does not work as the protocol asks"),
                said=one_line(str(error), 200),
            ) from error
        except httpx2.HTTPError as error:
            raise ServerFailed(
                t.later("its sign-in can't be reached"), said=one_line(str(error), 200)
            ) from error
    metadata = found.metadata
    pending = PendingLogin(
        url=url,
        issuer=str(metadata.issuer),
        requires_issuer=bool(metadata.authorization_response_iss_parameter_supported),
        token_endpoint=_secured(metadata.token_endpoint),
        resource=found.resource,
        client=registered,
        redirect_uri=redirect_uri,
        state=state or secrets.token_urlsafe(32),
        verifier=Pkce().verifier,
        scope=found.scope,
    )
    return pending, _authorization_address(metadata, pending)


async def finish(pending: PendingLogin, address: str) -> ServerLogin:
    """Exchanges the code in the address that the browser was redirected to. Raises ServerFailed."""
    given = {
        key: values[0]
        for key, values in parse_qs(urlsplit(address.strip()).query).items()
    }
    if not secrets.compare_digest(
        given.get("state", "").encode(), pending.state.encode()
    ):
        raise ServerFailed(
            t.later("the address does not belong to this login"),
            hint=t.later(
                "Copy the whole address from the browser, beginning with http://127.0.0.1."
            ),
        )
    if said := given.get("error"):
        about = one_line(given.get("error_description", ""), 200)
        raise ServerFailed(
            t.later("signing in was refused ({one_line})", one_line=one_line(said, 60)),
            said=about,
        )
    issuer = given.get("iss", "")
    if issuer != pending.issuer and (issuer or pending.requires_issuer):
        raise ServerFailed(t.later("the answer came from another authorization server"))
    if not given.get("code"):
        raise ServerFailed(t.later("the address has no code"))
    form = {
        "grant_type": "authorization_code",
        "code": given["code"],
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
        "resource": pending.resource,
    }
    answer = await _token(pending.token_endpoint, pending.client, form)
    return ServerLogin(
        url=pending.url,
        token_endpoint=pending.token_endpoint,
        resource=pending.resource,
        client=pending.client,
        access_token=answer.access_token,
        refresh_token=answer.refresh_token,
        expires_at=_expiry(answer),
        scope=answer.scope or pending.scope,
    )


async def refresh(login: ServerLogin) -> ServerLogin:
    """Returns the login with a new token. Raises LoginEnded if the person has to sign in again, else ServerFailed."""
    if not login.refresh_token:
        raise LoginEnded(t.later("your login has expired"))
    form = {
        "grant_type": "refresh_token",
        "refresh_token": login.refresh_token,
        "resource": login.resource,
    }
    answer = await _token(login.token_endpoint, login.client, form)
    return msgspec.structs.replace(
        login,
        access_token=answer.access_token,
        refresh_token=answer.refresh_token or login.refresh_token,
        expires_at=_expiry(answer),
        scope=answer.scope or login.scope,
        ended="",
    )


def _authorization_address(metadata: OAuthMetadata, pending: PendingLogin) -> str:
    fields = {
        "response_type": "code",
        "client_id": pending.client.id,
        "redirect_uri": pending.redirect_uri,
        "state": pending.state,
        "code_challenge": Pkce(pending.verifier).challenge,
        "code_challenge_method": "S256",
        "resource": pending.resource,
        **({"scope": pending.scope} if pending.scope else {}),
    }
    endpoint = _secured(metadata.authorization_endpoint)
    joint = "&" if urlsplit(endpoint).query else "?"
    return f"{endpoint}{joint}{urlencode(fields)}"


async def _discover(client: httpx2.AsyncClient, url: str) -> Discovered:
    """Asks the server for its authorization server (RFC 9728), and that for its endpoints (RFC 8414)."""
    answer = await client.post(url, json=_PROBE, headers={"accept": "application/json"})
    resource_metadata = await _protected_resource(client, url, answer)
    resource = resource_url_from_server_url(url)
    authority: str | None = None
    if resource_metadata is not None:
        said = str(resource_metadata.resource)
        if not check_resource_allowed(
            requested_resource=resource, configured_resource=said
        ):
            raise ServerFailed(
                t.later(
                    "it asks for a token for something else ({one_line})",
                    one_line=one_line(said),
                )
            )
        resource, authority = said, str(resource_metadata.authorization_servers[0])
    metadata = await _server_metadata(client, url, authority)
    challenge = (
        utils.extract_scope_from_www_auth(answer) if answer.status_code == 401 else None
    )
    scope = utils.get_client_metadata_scopes(
        challenge, resource_metadata, metadata, ["authorization_code", "refresh_token"]
    )
    return Discovered(metadata, resource, scope or "")


async def _protected_resource(
    client: httpx2.AsyncClient, url: str, answer: httpx2.Response
) -> ProtectedResourceMetadata | None:
    named = None
    if answer.status_code == 401:
        named = utils.extract_resource_metadata_from_www_auth(answer)
    for address in utils.build_protected_resource_metadata_discovery_urls(named, url):
        response = await client.get(_secured(address))
        found = await utils.handle_protected_resource_response(response)
        if found is not None:
            return found
    return None


async def _server_metadata(
    client: httpx2.AsyncClient, url: str, authority: str | None
) -> OAuthMetadata:
    urls = utils.build_oauth_authorization_server_metadata_discovery_urls(
        authority, url
    )
    for address in urls:
        response = await client.get(_secured(address))
        _, metadata = await utils.handle_auth_metadata_response(response)
        if metadata is None:
            continue
        if authority is not None and not utils.issuers_match(
            str(metadata.issuer), authority
        ):
            raise ServerFailed(
                t.later("its authorization server calls itself something else")
            )
        methods = metadata.code_challenge_methods_supported
        if methods is not None and "S256" not in methods:
            raise ServerFailed(
                t.later("its authorization server does not know PKCE (S256)")
            )
        return metadata
    raise ServerFailed(
        t.later("it does not say how to sign in"),
        hint=t.later(
            "If it accepts a token, put it into its headers: see the guide on MCP servers."
        ),
    )


async def _register(
    client: httpx2.AsyncClient, found: Discovered, redirect_uri: str
) -> OAuthClient:
    if found.metadata.registration_endpoint is None:
        raise ServerFailed(
            t.later(
                "its authorization server does not let programs register themselves"
            ),
            hint=t.later("Ask its operator for a token, and put it into its headers."),
        )
    wanted = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [redirect_uri],
            "client_name": "Hermes",
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "scope": found.scope or None,
            "software_version": __version__,
        }
    )
    response = await client.post(
        _secured(found.metadata.registration_endpoint),
        json=wanted.model_dump(by_alias=True, mode="json", exclude_none=True),
    )
    made = await utils.handle_registration_response(response)
    check_registration_usable(made)
    return OAuthClient(
        made.client_id or "",
        made.client_secret or "",
        made.token_endpoint_auth_method or "none",
    )


async def _token(
    endpoint: str, registered: OAuthClient, form: dict[str, str]
) -> TokenAnswer:
    """Requests a token. Raises LoginEnded if the endpoint rejects the grant, ServerFailed if it can't answer."""
    fields, headers = _authenticated(registered, form)
    try:
        async with _client() as client:
            response = await client.post(
                _secured(endpoint), data=fields, headers=headers
            )
            body = await response.aread()
    except httpx2.HTTPError as error:
        raise ServerFailed(
            t.later("its sign-in can't be reached"), said=one_line(str(error), 200)
        ) from error
    if response.status_code >= 400:
        _refused(response.status_code, body)
    try:
        answer = msgspec.json.decode(body, type=TokenAnswer)
    except msgspec.MsgspecError as error:
        raise ServerFailed(t.later("its authorization server sent no token")) from error
    if answer.token_type.lower() != "bearer" or not answer.access_token:
        raise ServerFailed(
            t.later("its authorization server sent a token of an unknown kind")
        )
    return answer


def _refused(status: int, body: bytes) -> NoReturn:
    try:
        said = msgspec.json.decode(body, type=_TokenError)
    except msgspec.MsgspecError:
        said = _TokenError()
    words = one_line(said.error_description or said.error, 200)
    if status in {408, 425, 429} or status >= 500:
        raise ServerFailed(
            t.later(
                "its authorization server can't answer now ({status})", status=status
            ),
            said=words,
        )
    raise LoginEnded(
        t.later("its authorization server refused the login ({status})", status=status),
        said=words,
    )


def _authenticated(
    registered: OAuthClient, form: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    fields = {**form, "client_id": registered.id}
    if registered.auth_method == "client_secret_basic" and registered.secret:
        pair = f"{quote(registered.id, safe='')}:{quote(registered.secret, safe='')}"
        encoded = base64.b64encode(pair.encode()).decode()
        return fields, {"authorization": f"Basic {encoded}"}
    if registered.auth_method == "client_secret_post" and registered.secret:
        fields["client_secret"] = registered.secret
    return fields, {}


def _expiry(answer: TokenAnswer) -> float:
    return unix_now() + answer.expires_in if answer.expires_in else 0.0


@asynccontextmanager
async def _client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client that follows no redirects and limits the size of responses."""
    headers = {"user-agent": f"hermes/{__version__}", "accept-encoding": "identity"}
    transport = LimitedTransport(_MAX_ANSWER_BYTES)
    async with httpx2.AsyncClient(
        headers=headers, transport=transport, timeout=_REQUEST_TIMEOUT_S
    ) as client:
        yield client


def _secured(address: object) -> str:
    _require_secure(str(address))
    return str(address)


def _require_secure(address: str) -> None:
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS
    if parts.scheme != "https" and not is_local:
        raise ServerFailed(
            t.later(
                "its sign-in uses an address without encryption ({one_line})",
                one_line=one_line(address, 100),
            )
        )
    if parts.username or parts.password:
        raise ServerFailed(t.later("its sign-in uses an address with a password in it"))
