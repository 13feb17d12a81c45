"""Schedules in a chat: the agent makes a job there with a press of a button, and its result comes back to the chat."""

from pathlib import Path

from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import OWNER, opened, until

from hermes.settings.sections import StoreSettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

ADD = '{"action": "add", "when": "every weekday at 9:00", "task": "tell the news"}'


async def test_a_job_is_made_in_a_chat_and_its_result_is_delivered_there(
    tmp_path: Path, store_url: str
) -> None:
    replies = (
        ScriptedResponse(calls=(ServedCall("schedule", ADD),)),
        "It is planned.",
        "Nothing is new today.",
    )
    store = StoreSettings(url=store_url)
    async with (
        TelegramServer() as telegram,
        ModelServer(*replies) as model,
        opened(tmp_path, model, telegram, store=store) as harness,
    ):
        telegram.say("tell me the news every weekday")
        asked = await telegram.sees("a job, every weekday at 9:00")
        telegram.press(asked, "Allow")
        await telegram.sees("It is planned.")
        schedules = harness.app.store.schedules
        (job,) = schedules.jobs()
        assert job.deliver == f"telegram:{OWNER}"
        (planned,) = schedules.planned()
        assert planned.due > harness.app.clock.now()
        now = harness.app.clock.now()
        schedules.plan(
            type(planned)(job.id, now, now, "hand")
        )  # as if it were nine o'clock
        await telegram.sees("Nothing is new today.")
        await until(lambda: schedules.history(job.id)[0].delivery == job.deliver)
        assert telegram.texts().count("Nothing is new today.") == 1
