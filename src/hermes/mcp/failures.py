"""Why a server can't be used, in words for the user."""

from hermes.errors import HermesError


class ServerFailed(HermesError):
    """What went wrong, as the end of the sentence "The MCP server NAME can't be used: ...".

    `said` holds words of the server's own. The user may see them; a model would take them for ours.
    """

    def __init__(self, message: str, *, hint: str = "", said: str = "") -> None:
        super().__init__(message, hint=hint)
        self.said = said

    @property
    def full(self) -> str:
        """With the words of the server."""
        return f"{self.message}: {self.said}" if self.said else self.message


class ServerRefused(Exception):
    """The server answered a request with an error. The words are the server's own."""


class Closed(Exception):
    """The connection, or the request's own stream, ended before the answer came."""


def leaves(error: BaseException) -> list[BaseException]:
    """The failures inside a group of tasks."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]
