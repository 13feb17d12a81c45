"""One error for every sense: the model reads what the person reads."""

from hermes.errors import (
    HermesError,
    MediaError,
    MediaErrorKind,
    ToolFailed,
    in_sentences,
)


def test_a_media_error_tells_the_model_what_it_tells_the_person() -> None:
    error = MediaError(
        MediaErrorKind.NOT_CONFIGURED,
        "Nothing here can make pictures.",
        sense="image generation",
        hint="Set OPENAI_API_KEY.",
    )

    assert isinstance(error, ToolFailed)  # which is what a model reads
    assert isinstance(error, HermesError)  # which is what a person reads
    assert in_sentences(error) == "Nothing here can make pictures. Set OPENAI_API_KEY."
    assert error.kind.value == "not configured"
