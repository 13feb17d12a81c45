"""What a list of a chat says of its entries."""

from hermes.app.child_sessions import ChildStatus
from hermes.surfaces.tui.pickers import child_preview


def test_the_answer_of_an_agent_is_shown_without_marks_of_markdown() -> None:
    answer = "## Found\n\nThe **cause** is `parse`.\n\n- one\n- two"
    child = ChildStatus(
        id="c", parent="p", kind="delegate", state="done", answer=answer
    )
    shown = child_preview(child)
    assert "The cause is parse." in shown
    assert "Found" in shown
    assert not set("#*`") & set(shown)
