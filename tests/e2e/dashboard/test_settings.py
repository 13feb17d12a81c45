"""Settings on the page: edited into config.yaml, judged by the server; usage, policy and doctor as they are."""

import re
import time

from playwright.async_api import Page, expect
from tests.e2e.dashboard.conftest import PATIENCE, Board, Complaints
from tests.e2e.dashboard.past import write_past
from tests.e2e.dashboard.walking import go


async def test_a_setting_goes_into_the_file_and_back(
    visit: Page, shared: Board, complaints: Complaints
) -> None:
    config = shared.hermes.home / "config.yaml"
    config.write_text(f"# mine\n{config.read_text()}")
    await go(visit, "/settings")
    await expect(visit.locator('[data-key="model.max_attempts"]')).to_be_visible()
    await visit.keyboard.press("/")
    await visit.keyboard.type("max_attempts")
    setting = visit.locator('[data-key="model.max_attempts"]')
    await expect(visit.locator(".setting")).to_have_count(1)
    await expect(setting.get_by_label("Attempts per call")).to_be_visible()
    await expect(setting.get_by_text("model.max_attempts")).to_have_count(0)
    await visit.get_by_label("Show keys").check()
    await expect(setting.get_by_text("model.max_attempts")).to_be_visible()
    field = setting.get_by_role("textbox")
    await expect(field).to_have_js_property("spellcheck", value=False)
    await field.fill("7")
    await field.press("Enter")
    await expect(setting.locator(".tag")).to_have_text(re.compile(r"config.yaml:\d"))
    assert re.search(r"^  max_attempts: 7$", config.read_text(), re.MULTILINE)
    assert config.read_text().startswith("# mine\n")
    await field.fill("lots")
    await setting.get_by_role("button", name="Save").click()
    await expect(setting.get_by_role("alert")).to_contain_text(
        "expected a whole number from 1 to 10, got 'lots'"
    )
    complaints.expect("400")
    assert "max_attempts: 7" in config.read_text()
    await field.press("Escape")
    await expect(field).to_have_value("7")
    await setting.get_by_role("button", name="Restore the default").click()
    await expect(setting.locator(".tag")).to_have_text("default")
    await expect(field).to_have_value("4")
    assert "max_attempts" not in config.read_text()


async def test_switches_choices_and_lists_are_saved_as_what_they_are(
    visit: Page, shared: Board
) -> None:
    await go(visit, "/settings")
    await visit.locator('[data-key="browser.headless"]').get_by_role("switch").click()
    await expect(visit.locator('[data-key="browser.headless"] .tag')).to_contain_text(
        "config.yaml"
    )
    await visit.locator('[data-key="logging.level"] select').select_option("debug")
    await expect(visit.locator('[data-key="logging.level"] .tag')).to_contain_text(
        "config.yaml"
    )
    hosts = visit.locator('[data-key="web.allow_hosts"]')
    await hosts.get_by_role("textbox").fill("nas.lan\nprinter.lan")
    await hosts.get_by_role("button", name="Save").click()
    await expect(hosts.get_by_role("textbox")).to_have_value("nas.lan\nprinter.lan")
    await expect(hosts.get_by_role("button", name="Save")).to_have_count(0)
    shown = await shared.hermes.run("config", "show", "--json")
    assert '"nas.lan"' in shown.out
    config = (shared.hermes.home / "config.yaml").read_text()
    assert re.search(r"headless: false", config)
    assert re.search(r"level: debug", config)


async def test_usage_is_drawn_and_told_in_a_table(visit: Page, shared: Board) -> None:
    write_past(shared.hermes.home, time.time())
    await go(visit, "/settings/usage")
    await expect(visit.locator(".tiles")).to_contain_text("$0.116")
    chart = visit.get_by_role("img", name=re.compile("^Cost by day, \\$0.116 in total"))
    await expect(chart.locator("rect.s0")).to_have_count(2)  # two days of one model
    await expect(chart.locator("rect.s1")).to_have_count(1)
    table = visit.get_by_role("table", name="Usage by model")
    await expect(
        table.get_by_role(
            "row", name=re.compile(r"openai:fake-2 1 2,400 1,900 310 \$0.050")
        )
    ).to_be_visible()
    await visit.get_by_role("button", name="Tokens", exact=True).click()
    await expect(
        visit.get_by_role("img", name=re.compile("^Tokens by day, 16k in total"))
    ).to_be_visible()


async def test_a_command_is_judged_and_a_remembered_answer_is_forgotten(
    visit: Page, shared: Board
) -> None:
    rules = shared.hermes.home / "policy.yaml"
    rules.write_text(
        "version: 1\nforbid:\n  - {program: docker, arguments: [push]}\nremembered:\n  - program npm ci\n"
    )
    await go(visit, "/settings/policy")
    command = visit.get_by_role("textbox", name="Command")
    await expect(command).to_have_js_property("spellcheck", value=False)
    verdict = visit.locator(".verdict")
    for text, said in (
        ("ls -l", "allow"),
        ("docker push x", "forbid"),
        ("curl https://example.org", "ask"),
    ):
        await command.fill(text)
        await command.press("Enter")
        await expect(verdict.locator("code")).to_have_text(text)
        await expect(verdict).to_have_attribute("data-verdict", said)
    await expect(visit.get_by_text("docker push", exact=True)).to_be_visible()
    await visit.get_by_role("button", name="Forget program npm ci").click()
    await visit.get_by_role("button", name="Forget this answer").click()
    await expect(visit.get_by_text("program npm ci")).to_have_count(0)
    assert "npm" not in rules.read_text()
    assert "docker" in rules.read_text()


async def test_models_tools_and_the_doctor_are_shown(visit: Page) -> None:
    await go(visit, "/settings/doctor")
    finding = visit.locator(".finding", has_text="python")
    await expect(finding).to_contain_text(
        "Python 3.", timeout=PATIENCE * 1000
    )  # it looks at everything first
    await go(visit, "/settings/tools")
    await visit.get_by_role("searchbox", name="Search the tools").fill("read_file")
    await expect(visit.locator(".tool-row")).to_contain_text(["Reads text"])
    await go(visit, "/settings/models")
    await expect(visit.locator(".big")).to_have_text("openai-compatible gpt-5")
    await expect(visit.locator("[data-current]")).to_have_text(
        "openai-compatible:gpt-5"
    )
    await go(visit, "/settings/mcp")
    await expect(visit.get_by_role("heading", name="No MCP servers")).to_be_visible()
