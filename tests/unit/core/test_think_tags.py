"""Thinking in the text is told from text, however the stream cuts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.providers.test_chat_completions_reader import message

from hermes.core.think_tags import ReplyWords, Thinking
from hermes.providers.catalogue import ModelFacts
from hermes.providers.endpoint import ModelEndpoint
from hermes.providers.provider_table import FAMILIES


def split(pieces: list[str]) -> tuple[str, str]:
    thinking = Thinking()
    parts = [*(thinking.feed(piece) for piece in pieces), thinking.end()]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>\n\nyes", ("hm", "yes")),
        ("\n<think>hm", ("hm", "")),
        ("<thin", ("", "<thin")),
        ("use <think>x</think> here", ("x", "use  here")),
        ("use `<think>` and </think> here", ("", "use `<think>` and </think> here")),
        ("use <think> here", ("", "use <think> here")),
        ("```\n<think>x</think>\n```", ("", "```\n<think>x</think>\n```")),
        ("one\n<think>hm</think>\ntwo", ("hm", "one\ntwo")),
        ("one\n\n  <think>hm", ("hm", "one\n\n  ")),
        ("<REASONING_SCRATCHPAD>a</REASONING_SCRATCHPAD>b", ("a", "b")),
        ("a\n<scratchpad>b</scratchpad>c <thinking>d</thinking>e", ("bd", "a\nc e")),
        ("~~~\n<think>a</think>\n~~~", ("", "~~~\n<think>a</think>\n~~~")),
        ("a < b and <b>bold</b>", ("", "a < b and <b>bold</b>")),
        ("<thinks> not", ("", "<thinks> not")),
        ("<think></think>yes", ("", "yes")),
        ("<think>a < b </thin", ("a < b </thin", "")),
        ("plain", ("", "plain")),
        ("", ("", "")),
    ],
)
def test_blocks_of_thinking_are_found_wherever_they_stand(
    text: str, expected: tuple[str, str]
) -> None:
    assert split([text]) == expected


@given(
    st.lists(
        st.sampled_from(
            [
                "<think>",
                "</think>",
                "<",
                "think",
                ">",
                " ",
                "a",
                "\n",
                "</",
                "`",
                "```",
                "~~~",
            ]
        ),
        max_size=12,
    ),
    st.data(),
)
def test_where_the_stream_is_cut_makes_no_difference(
    parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [
        text[start:end]
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]
    assert split(pieces) == split([text])


def test_a_reply_with_thinking_in_its_text_has_reasoning_and_text() -> None:
    reply = message(
        {"content": "<th"}, {"content": "ink>let me see</think>"}, {"content": "\n\n42"}
    )
    assert (reply.reasoning, reply.text) == ("let me see", "42")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let me see\n</think>\n\n42", ("let me see", "42")),
        ("let me see\n</THINK>42", ("let me see", "42")),
        ("it is `</think>`", ("", "it is `</think>`")),
        ("the tag </think> ends it", ("", "the tag </think> ends it")),
        ("as in\n```\n</think>\n```", ("", "as in\n```\n</think>\n```")),
        ("as in\n~~~\n</think>\n~~~", ("", "as in\n~~~\n</think>\n~~~")),
        ("as in\n~~~\n```\n</think>\n~~~", ("", "as in\n~~~\n```\n</think>\n~~~")),
        ("as in\n\n    </think>\nb", ("", "as in\n\n    </think>\nb")),
        ("as in\n\n\t</think>\nb", ("", "as in\n\n\t</think>\nb")),
        ("~~~\na\n~~~\nso\n   </think>\nb", ("~~~\na\n~~~\nso", "b")),
        ("it is ```a``` and\n</think>\nb", ("it is ```a``` and", "b")),
    ],
)
def test_thinking_whose_opening_tag_was_in_the_prompt_is_no_text(
    text: str, expected: tuple[str, str]
) -> None:
    reply = message({"content": text})
    assert (reply.reasoning, reply.text) == expected


@pytest.mark.parametrize("family", ["anthropic", "openai"])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_vendor_s_own_service_may_write_tags(family: str, is_own: bool) -> None:
    quirks = next(one for one in FAMILIES if one.family == family)
    endpoint = ModelEndpoint(
        provider=family,
        base_url=quirks.base_url if is_own else "http://127.0.0.1:1/v1",
        model="m",
        quirks=quirks,
        facts=ModelFacts(),
    )
    assert endpoint.tells_thinking_apart is is_own
    words = ReplyWords(has_tags=not endpoint.tells_thinking_apart)
    words.add_text("<think>an example</think>yes")
    words.end_part()
    assert words.both()[1] == ("<think>an example</think>" if is_own else "") + "yes"
