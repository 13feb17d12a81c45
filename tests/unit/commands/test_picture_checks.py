"""What `hermes doctor` says about pictures."""

from pathlib import Path

import pytest

from hermes.commands.doctor_checks import Site
from hermes.commands.picture_checks import check_pictures
from hermes.settings import Home


@pytest.mark.parametrize(
    ("environ", "check", "mark", "words"),
    [
        (
            {"OPENAI_API_KEY": "k", "HERMES_MODEL_DEFAULT": "gpt-5"},
            "vision",
            "ok",
            "gpt-5 sees pictures itself",
        ),
        ({"HERMES_MEDIA_VISION": "off"}, "vision", "ok", "off"),
        (
            {"HERMES_MEDIA_VISION": "openai:gpt-5"},
            "vision",
            "warn",
            "OPENAI_API_KEY is not set",
        ),
        (
            {"OPENAI_API_KEY": "k", "HERMES_MEDIA_VISION": "openai:gpt-5"},
            "vision",
            "ok",
            "openai:gpt-5 describes pictures",
        ),
        ({"FAL_KEY": "k"}, "image generation", "ok", "fal fal-ai/flux-2-dev"),
        (
            {"HERMES_MEDIA_IMAGE_GENERATION": "fal"},
            "image generation",
            "warn",
            "fal has no API key.",
        ),
        ({}, "image generation", "ok", "not set up (optional)"),
        (
            {"HERMES_MEDIA_IMAGE_GENERATION": "foo"},
            "image generation",
            "warn",
            "media.image_generation: there is no provider called foo.",
        ),
        (
            {"OPENAI_API_KEY": "k", "HERMES_MEDIA_VISION": "foo"},
            "vision",
            "warn",
            "foo (media.vision) can't look at pictures",
        ),
        (
            {"HERMES_TOOLS_ENABLED": '["browser"]', "PATH": "/nonexistent"},
            "browser",
            "warn",
            "there is no browser",
        ),
        (
            {
                "HERMES_BROWSER_EXECUTABLE": "/bin/sh",
                "HERMES_BROWSER_AS_ROOT": "true",
            },
            "browser",
            "ok",
            "/bin/sh",
        ),
        (
            {
                "HERMES_BROWSER_EXECUTABLE": "/bin/sh",
                "HERMES_TOOLS_DISABLED": '["browser"]',
            },
            "browser",
            "ok",
            "off (tools.disabled)",
        ),
        ({"PATH": "/nonexistent"}, "browser", "ok", "not set up (optional)"),
        ({"HERMES_MEDIA_DOCUMENTS": "off"}, "documents", "ok", "off (media.documents)"),
        ({}, "documents", "ok", "PDF, Word, Excel, PowerPoint, EPUB, HTML"),
    ],
)
def test_the_doctor_says_who_looks_and_who_draws(
    environ: dict[str, str], check: str, mark: str, words: str
) -> None:
    site = Site(Home(Path("/nonexistent/home")), {"HOME": "/nonexistent", **environ})
    found = {one.check: one for one in check_pictures(site)}
    assert (found[check].mark, words in found[check].text) == (mark, True), found[check]
