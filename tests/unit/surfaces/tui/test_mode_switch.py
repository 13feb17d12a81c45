"""Shift-Tab goes through the modes, also while a call waits for approval."""

from hermes.surfaces.terminal.run_options import Approvals
from hermes.surfaces.tui.mode_switch import ModeSwitch


async def test_a_mode_that_does_not_allow_the_call_takes_back_that_it_will_run() -> (
    None
):
    shown: list[tuple[Approvals, str]] = []

    async def use(mode: Approvals) -> None:
        raise AssertionError(mode)  # no press settles here

    switch = ModeSwitch(
        lambda: "ask", use, lambda mode, remark: shown.append((mode, remark))
    )
    switch.cycle(has_question=True)
    switch.cycle(has_question=True)
    switch.cycle(has_question=True)
    switch.cycle(has_question=True)
    switch.forget()
    modes, remarks = zip(*shown, strict=True)
    assert modes == ("auto-edit", "plan", "full", "ask")
    assert [remark.partition(":")[2][:16] for remark in remarks] == [
        " if it allows th",
        " the call still ",
        " if it allows th",
        " the call still ",
    ]


async def test_nothing_is_remarked_where_no_call_waits() -> None:
    shown: list[tuple[Approvals, str]] = []

    async def use(mode: Approvals) -> None:
        raise AssertionError(mode)

    switch = ModeSwitch(
        lambda: "full", use, lambda mode, remark: shown.append((mode, remark))
    )
    switch.cycle(has_question=False)
    switch.forget()
    assert shown == [("ask", "")]
