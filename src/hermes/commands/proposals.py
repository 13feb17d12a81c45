"""Changes to memory and skills that Hermes proposes: show, approve and reject them."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, DiffBlock, TextResult, line, message
from hermes.errors import translated
from hermes.learning.change import LearningError
from hermes.learning.proposals import Proposal
from hermes.text.formats import ago, first_line
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


NOTHING = to_translate("Nothing to review.")

ProposalIds = Annotated[tuple[str, ...], Arg("such as p3; or all", metavar="ID")]


class ProposalListing(msgspec.Struct, frozen=True, kw_only=True):
    """Proposed changes."""

    proposals: tuple[Proposal, ...]
    with_diffs: bool
    can_decide: bool

    def document(self) -> Any:
        return self.proposals

    def view(self, now: float) -> Iterable[Block]:
        for one in self.proposals:
            state = "" if one.status == "pending" else f" ({one.status})"
            title = f"{one.id}  {first_line(one.change.title)}{state}"
            why = f": {first_line(shown_reason(one.why))}" if one.why else ""
            yield line(f"{title}  {ago(one.created, now)}", "bold", fit="cut")
            yield line(
                t("by {origin}{why}", origin=first_line(str(one.origin)), why=why),
                "dim",
            )
            if self.with_diffs:
                yield DiffBlock(one.diff)
                yield line("")
        if not self.proposals:
            yield line(t.marked(NOTHING))
        elif self.can_decide:
            yield line(
                t("Decide with: hermes skills approve ID, or: hermes skills reject ID")
            )


@command("skills proposals", scope="observe")
def list_proposals(
    context: CommandContext,
    proposal: Annotated[str, Arg("one of them, with its diff", metavar="ID")] = "",
    *,
    all_: Annotated[bool, "include decided ones"] = False,
) -> ProposalListing:
    """List the proposed changes to memory and skills."""
    proposals = context.learning.proposals
    found = proposals.all() if all_ else proposals.pending()
    if proposal:
        found = [proposals.find(proposal)]
    return ProposalListing(
        proposals=tuple(found),
        with_diffs=bool(proposal) or not all_,
        can_decide=not all_,
    )


@command("skills approve", scope="approve")
def approve_proposals(context: CommandContext, proposals: ProposalIds) -> TextResult:
    """Apply proposed changes."""

    def approve(name: str) -> str:
        proposal = context.learning.approve(name)
        change = f" (change {proposal.hash[:10]})" if proposal.hash else ""
        return f"Applied {proposal.id}: {first_line(proposal.change.title)}{change}"

    return _decide(context, proposals, approve)


@command("skills reject", scope="approve")
def reject_proposals(context: CommandContext, proposals: ProposalIds) -> TextResult:
    """Reject proposed changes; they will not be proposed again."""

    def reject(name: str) -> str:
        return t(
            "{id} is rejected; it will not be proposed again.",
            id=context.learning.reject(name).id,
        )

    return _decide(context, proposals, reject)


def _decide(
    context: CommandContext, names: tuple[str, ...], decide: Callable[[str], str]
) -> TextResult:
    """Decides on each proposal; a failure of one does not stop the others."""
    if names == ("all",):
        names = tuple(one.id for one in context.learning.proposals.pending())
    lines: list[str] = []
    failed = False
    for name in dict.fromkeys(names):
        try:
            lines.append(decide(name))
        except LearningError as error:
            failed = True
            context.surface.warn(translated(error.words), translated(error.hint_words))
    return message(*(lines if names else [t.marked(NOTHING)]), failed=failed)
