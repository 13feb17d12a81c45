"""HTTP through a general client, for what `direct_http` can't do: proxies, and credentials in the address.

Only this module knows httpx2.
"""

from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from hermes.errors import words_of
from hermes.providers.http_response import ConnectionBroken
from hermes.text.translation import translator

t = translator(__name__)


if TYPE_CHECKING:
    import httpx2


class Proxied:
    """A pooled client that follows the environment's proxy settings."""

    @cached_property
    def _library(self) -> ModuleType:
        import httpx2

        return httpx2

    @cached_property
    def _client(self) -> "httpx2.AsyncClient":
        limits = self._library.Limits(
            max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0
        )
        return self._library.AsyncClient(
            follow_redirects=False, limits=limits, timeout=None
        )

    def warm(self) -> None:
        """Loads the client."""
        _ = self._client

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> "ProxiedExchange":
        """Sends a request and waits for the head of its answer. Raises OSError or ConnectionBroken."""
        library = self._library
        try:
            request = self._client.build_request(
                method, url, headers=headers, content=body or None
            )
            response = await self._client.send(request, stream=True)
        except library.ConnectError as error:
            raise OSError(
                str(error) or t.logged("the connection was refused")
            ) from error
        except (library.InvalidURL, library.UnsupportedProtocol) as error:
            raise OSError(t.logged("not an address: {error}", error=error)) from error
        except library.HTTPError as error:
            raise ConnectionBroken(words_of(error)) from error
        return ProxiedExchange(response, library)

    async def close(self) -> None:
        """Closes all connections."""
        if "_client" in self.__dict__:
            await self._client.aclose()


class ProxiedExchange:
    """An answer whose body is still coming."""

    def __init__(self, response: "httpx2.Response", library: ModuleType) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._library = library
        self._chunks: AsyncIterator[bytes] = response.aiter_raw()

    async def chunk(self) -> bytes:
        """Returns the next piece of the body; empty at its end. Raises ConnectionBroken."""
        try:
            return await anext(self._chunks, b"")
        except self._library.HTTPError as error:
            raise ConnectionBroken(words_of(error)) from error

    async def end(self) -> None:
        """Closes the answer."""
        await self._response.aclose()
