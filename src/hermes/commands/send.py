"""`hermes send`: a message to a chat from a script."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hermes.app.outgoing import MessageOutbox
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line
from hermes.errors import UsageError
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes send ntfy:alerts "the backup is done"
  hermes send telegram:123456 "the report" --file report.pdf
  df -h | hermes send email:anna@example.org -
  hermes send Anna "lunch?"             a person or group who has a chat with Hermes
The running gateway delivers it. Exit code 0: it arrived. 1: it did not. 2: wrong usage, such as an unknown target.
""")
_MAX_STDIN_CHARACTERS = 1_000_000


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of sending a message."""

    id: str
    target: str
    state: Literal["waiting", "sending", "sent", "failed"]
    reason: str = ""

    @property
    def exit_code(self) -> int:
        return int(self.state == "failed")

    def view(self, _now: float) -> Iterable[Block]:
        if self.state == "failed":
            reason = shown_reason(self.reason).removesuffix(".")
            yield line(
                t("Not sent to {target}: {reason}.", target=self.target, reason=reason),
                "bad",
                fit="wrap",
            )
        elif self.state == "sent":
            yield line(t("Sent to {target}.", target=self.target))
        else:
            yield line(
                t(
                    "Queued for {target}: a gateway sends it within a day.",
                    target=self.target,
                ),
                fit="wrap",
            )


@command("send")
async def send_message_to_chat(
    context: CommandContext,
    target: Annotated[
        str, "a chat such as telegram:123456, ntfy:topic or email:a@b, or a name"
    ],
    text: Annotated[
        tuple[str, ...], Arg("what to say; - or nothing to read stdin", metavar="TEXT")
    ] = (),
    *,
    file: Annotated[
        tuple[str, ...], Arg("a file to send too; can be repeated", metavar="FILE")
    ] = (),
    wait: Annotated[
        int,
        Arg(
            "give up after this many seconds; 0 queues the message and returns",
            metavar="SECONDS",
            at_least=0,
        ),
    ] = 30,
) -> SendResult:
    """Send a message to a chat, through the running gateway."""
    words = " ".join(text)
    if words == "-" or (not text and not file):
        words = _read_stdin()
    paths = tuple(Path(one) for one in file)
    sent = await MessageOutbox(context.app).send(target, words, paths, float(wait))
    return SendResult(
        id=sent.id, target=sent.target, state=sent.state, reason=sent.reason
    )


def _read_stdin() -> str:
    if sys.stdin.isatty():
        raise UsageError(
            t("There is nothing to send."), hint=t("Give a text, or pipe one.")
        )
    text = sys.stdin.read(_MAX_STDIN_CHARACTERS + 1)
    if len(text) > _MAX_STDIN_CHARACTERS:
        raise UsageError(
            t(
                "More than {max_stdin_characters:,} characters came in.",
                max_stdin_characters=_MAX_STDIN_CHARACTERS,
            ),
            hint=t("Send it as a file: --file"),
        )
    return text.strip("\n")
