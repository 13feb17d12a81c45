"""The HTTP base that the dashboard, the API server and incoming webhooks share.

A server is a list of `Endpoint`s in a `RouteTable`, an `AccessControl` and an
`ErrorFormat`, joined by a `WebApplication` and served by a `WebServer`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import override as override

else:

    def override(method):
        """`typing.override` is newer than the oldest Python that Hermes runs on."""
        return method
