"""What making room would do to a conversation next. Looks; changes nothing."""

from collections.abc import Sequence

import msgspec

from hermes.core.budget import message_tokens
from hermes.core.compaction import NotCompacted, choose_cut
from hermes.core.context_window import choose_trim
from hermes.schema.messages import Message


class Outlook(msgspec.Struct, frozen=True):
    """First old results become pointers; if that is not enough, a summary takes the place of the middle."""

    pointers: int
    freed: int
    """About how many tokens the results have that become pointers."""
    summarised: int
    replaced: int
    """About how many tokens the messages have that a summary would take the place of."""


def outlook(messages: Sequence[Message], *, first: int, last: int) -> Outlook:
    """What would happen now; all zero for a conversation that is short."""
    trimmed = choose_trim(messages, last)
    pointers, freed = len(trimmed.call_ids), trimmed.freed // 3
    try:
        cut = choose_cut(messages, first=first, last=last)
    except NotCompacted:
        return Outlook(pointers, freed, 0, 0)
    start = len(messages) - cut.tail
    middle = [
        message
        for place, message in enumerate(messages[:start], 1)
        if place > cut.head and place != cut.kept
    ]
    return Outlook(pointers, freed, len(middle), sum(map(message_tokens, middle)))
