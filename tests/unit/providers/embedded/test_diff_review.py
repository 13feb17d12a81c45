"""Reviews of diffs by the local model: what code sees in them."""

import pytest

from hermes.providers.embedded.diff_review import (
    asks_for_review,
    changed_blocks,
    findings,
    opening,
)


def diff(*lines: str, path: str = "pay.py") -> str:
    head = [f"diff --git a/{path} b/{path}", f"--- a/{path}", f"+++ b/{path}"]
    return "\n".join(
        [*head, "@@ -3,4 +10,4 @@ def f():", " first = 1", *lines, " last"]
    )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("-    if n <= 10:", "+    if n < 10:"), "`<=` became `<`"),
        (("-    if n >= 10:", "-        go()", "+    if n > 10:"), "`>=` became `>`"),
        (("-    return False", "+    return True"), "a failure was reported"),
        (("-    total += n", "+    total = n"), "`+=` became `=`"),
        (("-    if a and b:", "+    if a or b:"), "`and` became `or`"),
        (("-    if not done:", "+    if done:"), "`not` is gone"),
        (("-    return total / max(n, 1)", "+    return total / n"), "a guard is gone"),
        (("-    if user is None:", "-        return", "+    x = 1"), "a guard is gone"),
        (("-    handle.close()",), "what closed the file"),
        (("-try:", "-    send()", "-finally:", "-    stop()", "+send()"), "the handling of errors"),
        (("-    await save()", "+    save()"), "`await` is gone"),
        (("-    assert total == 6",), "a test or check is gone"),
        (("-    check_permission(user)",), "a check of rights"),
        (('+    db.execute("SELECT * FROM t WHERE n = \'" + name + "\'")',), "inject SQL"),
        (('+    db.execute(f"DELETE FROM t WHERE id = {key}")',), "inject SQL"),
        (("+    run(text, shell=True)",), "inject a command"),
        (('+API_KEY = "abcdef123456"',), "a secret"),
        (("+    except:",), "every error is caught"),
        (("+def f(items=[]):",), "share this default"),
        (("+    file = open(path)",), "nothing closes it"),
        (("+    breakpoint()",), "leftover"),
        (("+<<<<<<< HEAD",), "merge conflict"),
    ],
)  # fmt: skip
def test_a_common_mistake_is_found_with_its_place(
    lines: tuple[str, ...], words: str
) -> None:
    (found, *_) = (one for one in findings(diff(*lines)) if words in one)
    assert found.startswith("pay.py, line 11: ")


@pytest.mark.parametrize(
    "lines",
    [
        ("-    name = old", "+    name = new"),
        ("-# if not sure: ask", "+# ask"),
        ("+    with open(path) as file:",),
        ('+    db.execute("SELECT * FROM t WHERE n = ?", (name,))',),
        ("-    if a is None:", "+    if b is None:"),
        ("-    if not user:", " between", "+    if not user:"),
        ('+    word = one ? "token" : "tokens"',),
    ],
)
def test_a_harmless_change_is_left_alone(lines: tuple[str, ...]) -> None:
    assert list(findings(diff(*lines))) == []
    assert "found nothing" in opening(diff(*lines))


def test_each_file_and_line_is_followed() -> None:
    first = diff("-old", "+new", " between", "+more")
    second = diff("+--- not a header", path="b.py")
    blocks = [
        (one.path, one.line, len(one.removed), len(one.added))
        for one in changed_blocks(f"{first}\n{second}")
    ]
    assert blocks == [("pay.py", 11, 1, 1), ("pay.py", 13, 0, 1), ("b.py", 11, 0, 1)]


def test_only_a_diff_that_is_to_be_judged_is_reviewed() -> None:
    assert asks_for_review("review this", diff("+x"))
    assert not asks_for_review("write a commit message", diff("+x"))
    assert not asks_for_review("review this", "Dear all, the office is closed.")
