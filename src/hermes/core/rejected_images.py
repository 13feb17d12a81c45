"""What to do when a provider rejects an image: send it smaller once, then leave it out. Pure functions.

An image stays in the conversation, so one that is rejected would fail every later turn too.
"""

from collections.abc import Iterator, Sequence

import msgspec

from hermes.errors import ModelError
from hermes.schema.event_base import Event
from hermes.schema.events import PictureDescribed, PictureReduced, PictureWithheld
from hermes.schema.messages import AssistantMessage, Image, Message
from hermes.text.translation import translator

t = translator(__name__)

NOT_DESCRIBED = t.logged("it could not be described")
"""The beginning of the description of an image that nobody could describe."""
NO_TEXT_FOUND = "OCR found no text in it."  # not translated
"""The end of the description of an image about which nothing is known."""
_WORDS = ("image", "picture", "vision", "multimodal")
_REASONS = frozenset(("bad_request", "too_long", "refused", "not_found", "malformed"))
_NO_EYES = (
    "support image",
    "support vision",
    "image input",
    "image_url",
    "multimodal",
    "not support",
)


def is_about_pictures(
    error: ModelError, messages: Sequence[Message], model: str = ""
) -> bool:
    """Whether the images of a request may be why it was rejected. The name of the `model` is ignored."""
    fresh, all_of_them = _pictures(messages)
    if not all_of_them or error.reason not in _REASONS:
        return False
    said = error.message.lower().replace(model.lower() or " ", " ")
    if any(word in said for word in _WORDS):
        return True
    return bool(fresh) and (error.reason == "bad_request" or error.status == 413)


def steps(
    error: ModelError, messages: Sequence[Message]
) -> Iterator[PictureReduced | PictureWithheld]:
    """The rows to try, one after the other. Each changes the next request; only one that helps is recorded."""
    fresh, all_of_them = _pictures(messages)
    suspects = fresh or all_of_them
    said = error.message.lower()
    files = [
        one
        for one in suspects
        if not one.reduced and not one.source.startswith(("http://", "https://"))
    ]
    if (
        files
        and error.reason != "refused"
        and not any(phrase in said for phrase in _NO_EYES)
    ):
        detail = t.logged(
            "A picture was rejected by the provider, so a smaller copy was sent. ({error})",
            "{count} pictures were rejected by the provider, so smaller copies were sent. ({error})",
            count=len(files),
            error=error.message,
        )
        yield PictureReduced(sources=_sources(files), detail=detail)
    yield _withheld(suspects, error)
    others = [one for one in all_of_them if one.source not in _sources(suspects)]
    if others:
        yield _withheld(others, error)


def with_descriptions(
    row: PictureReduced | PictureWithheld, described: Sequence[Event]
) -> PictureReduced | PictureWithheld:
    """The row, which also tells the user if the model got descriptions in place of all its images."""
    in_words = {
        one.source
        for one in described
        if isinstance(one, PictureDescribed) and describes(one.text)
    }
    if isinstance(row, PictureReduced) or not in_words.issuperset(row.sources):
        return row
    instead = t.logged("The model got a description in words instead.")
    detail = f"{row.detail} {instead}"
    return msgspec.structs.replace(row, detail=detail)


def describes(text: str) -> bool:
    """Whether a description says anything about its image."""
    if not text or text.startswith(NOT_DESCRIBED):
        return False
    return not text.endswith(NO_TEXT_FOUND)


def _withheld(images: Sequence[Image], error: ModelError) -> PictureWithheld:
    sources = _sources(images)
    detail = t.logged(
        "A picture was left out, because the provider rejected it. Your file is unchanged. Send another copy (a smaller"
        " PNG or JPEG), or choose a model that can see pictures: hermes model. ({error})",
        "{count} pictures were left out, because the provider rejected them. Your files are unchanged. Send other copies"
        " (a smaller PNG or JPEG), or choose a model that can see pictures: hermes model. ({error})",
        count=len(sources),
        error=error.message,
    )
    return PictureWithheld(sources=sources, why="refused", detail=detail)


def _sources(images: Sequence[Image]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(image.source for image in images))


def _pictures(messages: Sequence[Message]) -> tuple[list[Image], list[Image]]:
    """The images since the last reply, none of which is known to be accepted; and all images that are sent."""
    fresh: list[Image] = []
    earlier: list[Image] = []
    is_fresh = True
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            is_fresh = False
        else:
            (fresh if is_fresh else earlier).extend(
                image for image in message.images if not image.withheld
            )
    return fresh, fresh + earlier
