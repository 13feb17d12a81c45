"""What a failed call means, and what may be done about it."""

import pytest

from hermes.errors import ModelError
from hermes.providers import model_failures
from hermes.providers.http_client import Phase, TransportFailure
from hermes.providers.model_failures import MAX_QUOTED_CHARACTERS, CalledService
from hermes.providers.provider_table import GENERIC, family

OPENAI = family("openai") or GENERIC
CALLER = CalledService(
    provider="openai",
    model="gpt-5",
    base_url="https://api.openai.com/v1",
    quirks=OPENAI,
    key_variable="OPENAI_API_KEY",
)


def answer(status: int, body: str = "", **headers: str) -> ModelError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return model_failures.from_status(
        CALLER, status, body.encode(), named, now=1_800_000_000.0
    )


@pytest.mark.parametrize(
    ("status", "reason", "retryable", "rotate", "fall_back"),
    [
        (401, "auth", False, True, True),
        (402, "billing", False, True, True),
        (403, "forbidden", False, False, True),
        (404, "not_found", False, False, True),
        (302, "not_found", False, False, True),
        (408, "timeout", True, False, True),
        (429, "rate_limited", True, True, True),
        (500, "server", True, False, True),
        (502, "server", True, False, True),
        (503, "overloaded", True, False, True),
        (529, "overloaded", True, False, True),
        (400, "bad_request", False, False, False),
        (413, "too_long", False, False, False),
    ],
)
def test_a_status_has_one_meaning(
    status: int, reason: str, retryable: bool, rotate: bool, fall_back: bool
) -> None:
    error = answer(status)
    assert (error.reason, error.retryable, error.rotate_key, error.fall_back) == (
        reason,
        retryable,
        rotate,
        fall_back,
    )
    assert error.status == status
    assert error.hint


def test_a_service_that_no_model_was_named_for_says_how_to_name_one() -> None:
    nobody = CalledService(
        provider="own",
        model="",
        base_url="http://lab/v1",
        quirks=GENERIC,
        key_variable="",
    )
    error = model_failures.from_status(nobody, 404, b"", {}, now=1_800_000_000.0)
    assert "hermes config set model.default NAME" in error.hint
    assert "()" not in error.hint
    assert "model.default (gpt-5)" in answer(404).hint


@pytest.mark.parametrize(
    "body",
    [
        '{"error":{"message":"Maximum context length is 128000 tokens.","code":"context_length_exceeded"}}',
        '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 21 tokens > 20"}}',
        '{"error":{"message":"This endpoint\'s maximum context length is 131072 tokens","code":400}}',
        '{"object":"error","message":"The input is too long: please reduce the length of the messages.","code":400}',
        '{"error":{"code":400,"message":"request exceeds the available context size","type":"exceed_context_size"}}',
        '{"error":{"message":"The input token count (12) exceeds the maximum number of tokens allowed (10)."}}',
        '{"error":"input is too long for this model"}',
        '[{"error":{"message":"input token count exceeds the maximum"}}]',
        '{"detail":"Prompt too long"}',
    ],
)
def test_a_conversation_that_does_not_fit_is_recognised_in_every_familys_words(
    body: str,
) -> None:
    error = answer(400, body)
    assert (error.reason, error.compress, error.retryable) == ("too_long", True, False)


def test_a_reply_limit_that_is_too_high_is_not_a_conversation_that_is_too_long() -> (
    None
):
    error = answer(
        400,
        '{"error":{"message":"max_tokens is too large: 90000. At most 16384 completion tokens."}}',
    )
    assert error.reason == "bad_request"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            429,
            '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}',
        ),
        (
            400,
            '{"type":"error","error":{"message":"Your credit balance is too low to access the API"}}',
        ),
        (402, '{"error":{"message":"Insufficient Balance"}}'),
    ],
)
def test_no_credit_is_not_retried_whatever_its_status(status: int, body: str) -> None:
    error = answer(status, body)
    assert (error.reason, error.retryable) == ("billing", False)


def test_a_content_filter_is_a_refusal() -> None:
    error = answer(
        400, '{"error":{"message":"blocked","code":"content_policy_violation"}}'
    )
    assert (error.reason, error.fall_back) == ("refused", False)


def test_a_wrong_key_behind_a_400_is_still_a_wrong_key() -> None:
    assert (
        answer(
            400,
            '{"error":{"message":"API key not valid. Please pass a valid API key."}}',
        ).reason
        == "auth"
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry_after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({"retry_after": "inf"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for_may_be_seconds_or_a_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert answer(429, **headers).retry_after == seconds


def test_entitlement_errors_keep_the_providers_own_words() -> None:
    error = answer(
        403, '{"error":{"message":"Your organization must be verified to use gpt-9."}}'
    )
    assert "Your organization must be verified to use gpt-9." in error.message


def test_the_upstreams_words_behind_a_router_are_kept_too() -> None:
    body = '{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"no GPUs","provider_name":"X"}}}'
    assert "Provider returned error: no GPUs" in answer(502, body).message


def test_keys_are_never_repeated() -> None:
    key = "sk-proj-" + "a1B2" * 8
    error = answer(
        401, f'{{"error":{{"message":"Incorrect API key provided: {key}."}}}}'
    )
    assert key not in error.message
    assert "Incorrect API key provided: ********" in error.message


def test_a_password_in_the_address_is_not_shown() -> None:
    caller = CalledService(
        provider="p",
        model="m",
        base_url="https://me:hunter2@host:1/v1?token=abc",
        quirks=GENERIC,
    )
    error = model_failures.from_transport(
        caller, TransportFailure("connect", "refused")
    )
    assert error.hint.endswith("https://host:1/v1")


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("http://localhost:9/v1", "a model server is running at http://localhost:9/v1"),
        (
            "https://x.org/v1",
            "your network connection and the address https://x.org/v1",
        ),
    ],
)
def test_a_failed_connection_says_what_to_check(address: str, advice: str) -> None:
    caller = CalledService(provider="p", model="m", base_url=address, quirks=GENERIC)
    error = model_failures.from_transport(
        caller, TransportFailure("connect", "refused")
    )
    assert error.hint.endswith(advice)


def test_a_rejected_key_is_named_by_the_variable_that_was_used() -> None:
    caller = CalledService(
        provider="lab",
        model="m",
        base_url="http://lab:8000/v1",
        quirks=GENERIC,
        key_variable="LAB_API_KEY",
    )
    error = model_failures.from_status(caller, 401, b"", {}, now=0.0)
    assert error.hint == "Check the key: hermes config set LAB_API_KEY"


def test_a_service_that_has_no_key_variable_gets_one_first() -> None:
    caller = CalledService(
        provider="lab", model="m", base_url="http://lab:8000/v1", quirks=GENERIC
    )
    error = model_failures.from_status(caller, 401, b"", {}, now=0.0)
    assert "OPENAI_API_KEY" not in error.hint
    assert "custom_providers.lab.key_env" in error.hint


def test_words_are_bounded_and_printable() -> None:
    error = answer(500, "x" * 10_000 + "\x1b[2J")
    assert len(error.message) < MAX_QUOTED_CHARACTERS + 100
    assert answer(500, "\x1b[2J\x07boo").message.isprintable()


def test_an_html_page_is_named_by_its_title() -> None:
    error = answer(
        502,
        "<html><head><title>Bad \n gateway</title></head></html>",
        content_type="text/html",
    )
    assert "an HTML page titled “Bad gateway”" in error.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "overloaded",
        ),
        ('{"error":{"message":"upstream died","code":502}}', "server"),
        (
            '{"error":{"code":"rate_limit_exceeded","message":"slow down"}}',
            "rate_limited",
        ),
        (
            '{"type":"error","code":"context_length_exceeded","message":"too long"}',
            "too_long",
        ),
        ('{"error":{"message":"something"}}', "server"),
        ('{"error":{"code":"PERMISSION_DENIED","message":"no"}}', "forbidden"),
        (
            '{"error":{"message":"Your account is not entitled to this model."}}',
            "forbidden",
        ),
        ('{"type":"error","message":"You do not have access to grok-9."}', "forbidden"),
        (
            '{"error":{"code":502,"type":"server_error","message":"You are not entitled to this model."}}',
            "forbidden",
        ),
        (
            '{"error":{"code":"server_error","message":"You exceeded your current quota"}}',
            "billing",
        ),
        ('{"error":{"code":500,"message":"Incorrect API key provided"}}', "auth"),
        ('{"error":{"code":500,"message":"the billing service is slow"}}', "server"),
        (
            '{"error":{"code":"usage_not_included","message":"Not included in your plan."}}',
            "forbidden",
        ),
    ],
)
def test_an_error_inside_a_stream_means_what_it_says(body: str, reason: str) -> None:
    assert model_failures.from_frame(CALLER, body.encode()).reason == reason


def test_what_the_account_may_not_use_is_not_asked_for_again() -> None:
    inside = model_failures.from_frame(
        CALLER, b'{"error":{"message":"an active subscription is needed"}}'
    )
    for error in (
        inside,
        answer(401, '{"error":{"message":"You do not have access to this model."}}'),
    ):
        assert (error.reason, error.retryable, error.rotate_key, error.fall_back) == (
            "forbidden",
            False,
            False,
            True,
        )


@pytest.mark.parametrize(
    ("body", "once"),
    [
        ("", True),
        ("Unauthorized", True),
        (
            '{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}',
            False,
        ),
        ('{"error":{"message":"Invalid token"}}', False),
    ],
)
def test_a_refusal_that_does_not_name_the_key_is_tried_with_one_other_at_most(
    body: str, once: bool
) -> None:
    error = answer(401, body)
    assert (error.reason, error.rotate_key, error.rotate_once) == ("auth", True, once)


@pytest.mark.parametrize(
    ("phase", "timed_out", "reason", "retryable"),
    [
        ("connect", True, "timeout", True),
        ("first_byte", True, "timeout", True),
        ("idle", True, "timeout", True),
        ("total", True, "timeout", False),
        ("connect", False, "connection", True),
        ("cut", False, "connection", True),
        ("too_large", False, "malformed", False),
    ],
)
def test_a_failure_on_the_way_says_how_far_it_got(
    phase: Phase, timed_out: bool, reason: str, retryable: bool
) -> None:
    error = model_failures.from_transport(
        CALLER, TransportFailure(phase, "so it went", timed_out=timed_out)
    )
    assert (error.reason, error.retryable) == (reason, retryable)
    assert "so it went" in error.message
