"""One file with everything of a home, made while others write, and the way back."""

import io
import secrets
import socket
import stat
import subprocess
import tarfile
import threading
import zlib
from pathlib import Path

import msgspec
import pytest

from hermes.app import build
from hermes.app.backup import back_up, restore
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_draft import CardDraft
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.children import git_folder
from hermes.errors import HermesError
from hermes.schema.events import (
    ApprovalRequested,
    SessionCreated,
    SessionPrompted,
    SessionTitled,
    TurnEnded,
)
from hermes.schema.messages import ToolFinished, UserMessage
from hermes.schema.tool_spec import ToolSpec
from hermes.settings import Home, Settings
from hermes.settings.yaml_read import parse_yaml
from hermes.store import open_store
from hermes.store.chats import Binding
from hermes.store.people import KnownPerson
from hermes.surfaces.dashboard.credentials import Keyring
from hermes.surfaces.dashboard.push import WebPush
from hermes.surfaces.gateway.adapter import Chat
from hermes.surfaces.gateway.api_server.api_keys import ApiKeys
from hermes.testing.installed import InstalledHermes


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home").ensure()
    home.ensure(home.memories, home.cache, home.root / "run")
    (home.memories / "MEMORY.md").write_text("- likes tea\n")
    (home.cache / "big").write_text("made anew")
    home.config.write_text("model: {}\n")
    home.env_file.write_text("OPENAI_API_KEY=sk-1\n")
    home.env_file.chmod(0o600)
    with open_store(home.state) as store:
        store.log.create("s", SessionCreated())
        store.log.append("s", UserMessage(text="remember the fjord"))
    return home


def names(file: Path) -> set[str]:
    with tarfile.open(file) as archive:
        return set(archive.getnames())


def said(home: Home) -> list[str]:
    with open_store(home.state) as store:
        return [message.text for message in store.log.messages("s")]


def test_everything_worth_keeping_is_in_it_and_for_nobody_else(
    home: Home, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.root / "live.sock"))
        done = back_up(home, tmp_path / "all.tar.gz")
    assert names(done.file) == {"state.db", "config.yaml", ".env", "memories/MEMORY.md"}
    assert stat.S_IMODE(done.file.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"home", "all.tar.gz"}
    assert ".env" not in names(
        back_up(home, tmp_path / "shared.tar.gz", secrets=False).file
    )


def test_what_a_running_gateway_says_of_itself_is_not_in_it(
    home: Home, tmp_path: Path
) -> None:
    folder = home.root / "gateway"
    home.ensure(folder)
    live = ("status.json", "gateway.lock", "restart.json", "restart.lock")
    for name in (*live, "kept.json"):
        (folder / name).write_text("{}")
    back_up(home, tmp_path / "b.tar.gz")
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        names = [Path(name) for name in archive.getnames()]
    assert [one.name for one in names if one.parent.name == "gateway"] == ["kept.json"]


def test_it_is_consistent_while_a_session_is_written(
    home: Home, tmp_path: Path
) -> None:
    enough, stop = threading.Event(), threading.Event()

    def write() -> None:
        with open_store(home.state) as store:
            for number in range(100_000):
                store.log.append("s", UserMessage(text=str(number)))
                if number == 20:
                    enough.set()
                if stop.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert enough.wait(30)
        done = back_up(home, tmp_path / "all.tar.gz")
    finally:
        stop.set()
        writer.join()
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    texts = said(other)
    assert texts[0] == "remember the fjord"
    assert texts[1:] == [str(number) for number in range(len(texts) - 1)]
    assert len(texts) > 20
    with open_store(other.state) as store:
        assert store.recovery is None
        assert not store.check().problems


def test_a_restore_keeps_what_was_there_beside_it(home: Home, tmp_path: Path) -> None:
    done = back_up(home, tmp_path / "all.tar.gz")
    (home.memories / "MEMORY.md").write_text("- likes coffee\n")
    back = restore(home, done.file, stamp="now")
    assert back.aside is not None
    assert (home.memories / "MEMORY.md").read_text() == "- likes tea\n"
    assert (back.aside / "memories" / "MEMORY.md").read_text() == "- likes coffee\n"
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert said(home) == ["remember the fjord"]


def test_a_home_in_use_is_not_replaced(home: Home, tmp_path: Path) -> None:
    done = back_up(home, tmp_path / "all.tar.gz")
    with open_store(home.state), pytest.raises(HermesError, match="is using"):
        restore(home, done.file, stamp="now")
    assert {path.name for path in tmp_path.iterdir()} == {"home", "all.tar.gz"}


def test_links_out_of_the_home_are_named_and_inner_ones_kept(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "dotfiles").mkdir()
    (home.root / "skills").symlink_to(tmp_path / "dotfiles")
    (home.root / "notes").symlink_to("memories/MEMORY.md")
    done = back_up(home, tmp_path / "all.tar.gz")
    assert done.left_out == ("skills",)
    restore(Home(tmp_path / "other"), done.file, stamp="now")
    assert (tmp_path / "other" / "notes").read_text() == "- likes tea\n"


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b cut off"])
def test_what_is_no_backup_changes_nothing(
    home: Home, tmp_path: Path, content: bytes
) -> None:
    source = tmp_path / "bad.tar.gz"
    source.write_bytes(content)
    with pytest.raises(HermesError, match="can't be restored"):
        restore(home, source, stamp="now")
    assert said(home) == ["remember the fjord"]
    assert {path.name for path in tmp_path.iterdir()} == {"home", "bad.tar.gz"}


def test_an_archive_that_leads_out_is_refused(home: Home, tmp_path: Path) -> None:
    source = tmp_path / "bad.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(home.config, "state.db")
        archive.add(home.config, "../outside")
    with pytest.raises(HermesError, match="outside"):
        restore(home, source, stamp="now")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("way", "/etc"),
        ("way", "../x"),
        ("deep/way", "../../x"),
        ("way", "here/../x"),
        ("way", "../home/state.db"),
    ],
)
def test_an_archive_with_a_link_that_leads_out_is_refused(
    home: Home, tmp_path: Path, name: str, target: str
) -> None:
    source = tmp_path / "bad.tar.gz"
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    with tarfile.open(source, "w:gz") as archive:
        archive.add(home.config, "state.db")
        archive.addfile(link)
    with pytest.raises(HermesError, match="link to the outside"):
        restore(home, source, stamp="now")
    assert said(home) == ["remember the fjord"]


def test_an_archive_whose_files_go_through_a_link_is_refused(
    home: Home, tmp_path: Path
) -> None:
    source = tmp_path / "bad.tar.gz"
    link = tarfile.TarInfo("way")
    link.type, link.linkname = tarfile.SYMTYPE, "skills"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(home.config, "state.db")
        archive.addfile(link)
        archive.add(home.config, "way/file")
    with pytest.raises(HermesError, match="outside the home"):
        restore(home, source, stamp="now")


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.LNKTYPE])
def test_an_archive_with_something_else_than_files_is_refused(
    home: Home, tmp_path: Path, kind: bytes
) -> None:
    source = tmp_path / "bad.tar.gz"
    odd = tarfile.TarInfo("odd")
    odd.type, odd.linkname = kind, "state.db"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(home.config, "state.db")
        archive.addfile(odd)
    with pytest.raises(HermesError, match="neither a file nor a link"):
        restore(home, source, stamp="now")


def test_every_home_that_is_replaced_within_a_second_is_kept(
    home: Home, tmp_path: Path
) -> None:
    made = back_up(home, tmp_path / "all.tar.gz").file
    for number in range(3):
        (home.root / "mark").write_text(str(number))
        aside = restore(home, made, stamp="now").aside
        assert aside is not None
        assert (aside / "mark").read_text() == str(number)
    kept = {path.name for path in tmp_path.iterdir() if ".before-" in path.name}
    assert kept == {"home.before-now", "home.before-now-2", "home.before-now-3"}


def test_an_existing_file_is_not_overwritten(home: Home, tmp_path: Path) -> None:
    (tmp_path / "all.tar.gz").write_text("mine")
    with pytest.raises(HermesError, match="already exists"):
        back_up(home, tmp_path / "all.tar.gz")
    assert (tmp_path / "all.tar.gz").read_text() == "mine"


async def test_keys_are_named_only_if_there_are_any(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.yaml").write_text("store: {}\n")
    file = str(tmp_path / "all.tar.gz")
    made = await hermes.run("backup", file, HERMES_HOME=str(bare))
    assert (made.code, made.err) == (0, "")
    assert "your keys" not in made.out


async def test_as_a_user_runs_it(home: Home, tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    made = await hermes.run(
        "backup", str(tmp_path / "all.tar.gz"), HERMES_HOME=str(home.root)
    )
    assert (made.code, made.err) == (0, "")
    assert "It contains your keys" in made.out
    back = await hermes.run(
        "restore", str(tmp_path / "all.tar.gz"), HERMES_HOME=str(tmp_path / "new")
    )
    assert (back.code, back.err) == (0, "")
    shown = await hermes.run(
        "sessions", "search", "fjord", HERMES_HOME=str(tmp_path / "new")
    )
    assert "remember the fjord" in shown.out


def member(archive: tarfile.TarFile, name: str, content: bytes = b"x") -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def contents(file: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(file) as archive:
        for info in archive.getmembers():
            reader = archive.extractfile(info)
            found[info.name] = reader.read() if reader else b""
    return found


def test_a_backup_without_secrets_holds_none_of_the_homes_wherever_they_stand(
    home: Home, tmp_path: Path
) -> None:
    key, password = "sk-proj-" + secrets.token_hex(20), 'a "quoted" pass\\word'
    home.env_file.write_text(f"OPENAI_API_KEY={key}\nDB_PASSWORD='{password}'\n")
    signing = Keyring(home, lambda: 0.0)
    token = signing.mint("token", ("admin",), seconds=60)
    ApiKeys(home, lambda: 0.0).add("laptop", ("chat",))
    assert WebPush(home, lambda _: True).public_key()
    (home.root / "gateway" / "matrix").mkdir(parents=True, exist_ok=True)
    (home.root / "gateway" / "matrix" / "device.db").write_bytes(b"\0device-key")
    (home.root / "plugins" / "p").mkdir(parents=True)
    (home.root / "plugins" / "p" / ".env").write_text("OTHER_TOKEN=abcdefgh12345678")
    (home.root / "notes.txt").write_text(f"use {key} here")
    (home.logs).mkdir()
    (home.logs / "hermes.log").write_text("nothing of interest")
    with open_store(home.state) as store:
        store.log.append("s", UserMessage(text=f"my key is {key} and {password}"))
        tools = (ToolSpec(name="t", description="words " * 200, parameters={}),)
        store.log.append(
            "s",
            SessionPrompted(system=(f"shared, with {key}", "own part"), tools=tools),
        )
        store.log.append(
            "s", SessionPrompted(system=("shared", f"own part with {key}"), tools=tools)
        )
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    signed = msgspec.json.decode((home.root / "dashboard/keys.json").read_bytes())[
        "key"
    ]
    pushes = (home.root / "dashboard/push.json").read_bytes()
    pushing = msgspec.json.decode(pushes)["key"]
    for name, content in contents(done.file).items():
        for value in (
            key,
            password,
            msgspec.json.encode(password).decode()[1:-1],
            signed,
            pushing,
            "device-key",
            token,
            "abcdefgh12345678",
        ):
            assert value.encode() not in content, name
    assert {
        "state.db",
        "config.yaml",
        "memories/MEMORY.md",
        "logs/hermes.log",
    } <= names(done.file)
    assert {
        ".env",
        "dashboard/keys.json",
        "gateway/api_keys.json",
        "notes.txt",
        "plugins/p/.env",
    } <= set(done.withheld)
    assert done.masked >= 1
    assert dict(done.holds)["memories"] == 1
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    assert said(other) == ["remember the fjord", "my key is ******** and ********"]
    with open_store(other.state) as store:
        assert not store.check().problems
        prompts = [
            row.event
            for row in store.log.events("s")
            if isinstance(row.event, SessionPrompted)
        ]
        assert [prompt.system for prompt in prompts] == [
            ("shared, with ********", "own part"),
            ("shared", "own part with ********"),
        ]


def test_a_backup_without_secrets_masks_what_looks_like_one_in_conversations(
    home: Home, tmp_path: Path
) -> None:
    shaped = "sk-proj-" + secrets.token_hex(20)
    said = f"my key is {shaped}"
    shown = 'db_password = "hunter2-hunter2"\nport = 5432\n'
    with open_store(home.state) as store:
        store.log.append("s", UserMessage(text=said), SessionTitled(title=said))
        store.log.append("s", ToolFinished(call_id="c", name="terminal", text=shown))
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    database = contents(done.file)["state.db"]
    assert shaped.encode() not in database
    assert b"hunter2" not in database
    restored = Home(tmp_path / "restored")
    restore(restored, done.file, stamp="now")
    with open_store(restored.state) as store:
        rows = [row.event for row in store.log.every_event("s")]
    assert [row.text for row in rows if isinstance(row, UserMessage)][-1:] == [
        "my key is ********"
    ]
    assert [row.text for row in rows if isinstance(row, ToolFinished)] == [
        'db_password = "********"\nport = 5432\n'
    ]


def test_a_secret_that_is_also_a_word_of_ours_leaves_every_row_readable(
    home: Home, tmp_path: Path
) -> None:
    """A state, the name of a field, and the value of a variable that holds no secret."""
    home.env_file.write_text(
        "DB_PASSWORD=interrupted\nSITE_PASSWORD=arguments\nEDITOR_MODE=workspace\n"
    )
    events = [
        TurnEnded(reason="interrupted"),
        ApprovalRequested(
            call_id="c",
            name="terminal",
            arguments="{}",
            summary="in arguments",
            reach="workspace",
        ),
        UserMessage(text="interrupted, in the workspace"),
    ]
    with open_store(home.state) as store:
        store.log.append("s", *events)
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    with open_store(other.state) as store:
        assert store.check().problems == []
        assert [row.event for row in store.log.events("s")][-3:] == [
            events[0],
            ApprovalRequested(
                call_id="c",
                name="terminal",
                arguments="{}",
                summary="in ********",
                reach="workspace",
            ),
            UserMessage(text="********, in the workspace"),
        ]


def test_cards_jobs_and_chats_are_readable_after_a_backup_without_secrets(
    home: Home, tmp_path: Path
) -> None:
    """Their JSON holds an address, and in a later string what looks like the end of one with a password."""
    shaped = "sk-proj-" + secrets.token_hex(20)
    place = "http://localhost:8080"
    chat = Chat("email", place, thread="ann@example.org", title="b@c")
    with build(Settings(), home) as app:
        boards = Boards(app)
        draft = CardDraft(title=f"Fix {place}", by="email:ann@example.org")
        plain = boards.create("default", draft)
        plain = boards.comment(plain.id, place, by="ann@example.org")
        body = f"with {shaped} of http://me:hunter2hunter2@example.org"
        told = boards.create("default", CardDraft(title="x", body=body))
        facts = {"deep": [{"password": "hunter2-hunter2", "n": 5}]}
        told = msgspec.structs.replace(told, metadata=facts)
        boards.change(lambda tx: tx.put(told))
        JobBook(app).add(JobDraft(name=place, schedule="every 1h", prompt="to a@b.c"))
        data = msgspec.json.encode(chat).decode()
        app.store.chats.bind(Binding("email/ann", "s", data)).result()
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    database = contents(done.file)["state.db"]
    assert b"hunter2" not in database
    assert shaped.encode() not in database
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    with build(Settings(), other) as app:
        boards = Boards(app)
        assert boards.find(plain.id) == plain
        found = boards.find(told.id)
        assert found.body == "with ******** of http://********@example.org"
        assert found.metadata == {"deep": [{"password": "********", "n": 5}]}
        said = boards.read(
            lambda it: it.history(plain.id, topic="kanban.card.commented")
        )
        assert [one.data["text"] for one in said] == [place]
        assert [one.name for one in app.store.schedules.jobs()] == [place]
        bound = app.store.chats.find("email/ann")
        assert bound is not None
        assert msgspec.json.decode(bound.chat, type=Chat) == chat


def test_ids_that_look_like_secrets_stay_and_so_do_references_to_them(
    home: Home, tmp_path: Path
) -> None:
    ids = [f"sk-proj-{secrets.token_hex(20)}" for _ in range(2)]
    with build(Settings(), home) as app:
        for name in ids:
            app.store.chats.bind(Binding(name, f"s-{name}", "{}")).result()
            app.store.chats.sending(name, "s", 1, 0).result()
            Boards(app).create("default", CardDraft(title="x", key=name))
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    with build(Settings(), other) as app:
        for name in ids:
            assert app.store.chats.find(name) is not None
            assert app.store.chats.shown(name) == ["s"]
        cards = Boards(app).read(lambda it: it.cards("default"))
        assert {card.key for card in cards} == set(ids)


def test_ids_that_are_values_of_the_environment_stay_different_and_numbers_whole(
    home: Home, tmp_path: Path
) -> None:
    home.env_file.write_text("MY_CHAT=123456789\nHER_CHAT=987654321\nDAY=17000000\n")
    with build(Settings(), home) as app:
        for person in ("123456789", "987654321"):
            app.store.people.put(KnownPerson("telegram", person, "", "user", 1.0))
        card = Boards(app).create(
            "default", CardDraft(title="call 123456789", priority=17000000)
        )
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    database = contents(done.file)["state.db"]
    assert b"123456789" not in database
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    with build(Settings(), other) as app:
        assert len({one.id for one in app.store.people.every()}) == 2
        found = Boards(app).find(card.id)
        assert found.title.startswith("call ********")
        assert found.priority == 17000000


def test_a_backup_without_secrets_masks_those_that_only_stand_in_settings_or_texts(
    home: Home, tmp_path: Path
) -> None:
    key, shaped, word = (
        "9f8e7d6c5b4a39281706",
        "sk-proj-" + secrets.token_hex(20),
        "correcthorse",
    )
    x = f"    x:\n      env: {{API_KEY: {key}, REGION: europe-north}}\n"
    y = f"    y:\n      env:\n        DB_PASSWORD: {word}\n"
    headers = f"      headers:\n        Authorization: Bearer {key[::-1]}\n        X: '${{MY_TOKEN}}'\n"
    home.config.write_text(f"mcp:\n  servers:\n{x}{y}{headers}")
    (home.memories / "USER.md").write_text(f"- her key is {shaped}\n- likes tea\n")
    home.logs.mkdir()
    (home.logs / "hermes.log").write_text("login with password=hunter2hunter2 failed\n")
    (home.root / "picture.png").write_bytes(b"\x89PNG\xff\0password=hunter3hunter3")
    repository = home.skills / "r"
    subprocess.run(["git", "init", "-q", "--template=", repository], check=True)
    git = ("git", "-C", repository)
    for text in (f"packed {shaped}", f"loose {shaped}", "loose and harmless"):
        subprocess.run(
            [*git, "hash-object", "-w", "--stdin"], input=text.encode(), check=True
        )
        if text.startswith("packed"):
            (loose,) = (path for path in (repository / ".git/objects").glob("??/*"))
            listed = f"{loose.parent.name}{loose.name}\n".encode()
            subprocess.run(
                [*git, "pack-objects", "-q", ".git/objects/pack/pack"],
                input=listed,
                check=True,
            )
            loose.unlink()
    with open_store(home.state) as store:
        store.log.append("s", UserMessage(text=f"it uses {key} and {word}"))
    done = back_up(home, tmp_path / "shared.tar.gz", secrets=False)
    found = contents(done.file)
    objects = {
        name: zlib.decompress(found[name])
        for name in found
        if "/objects/" in name and "/pack/" not in name
    }
    assert not any(name.endswith(".pack") for name in found)
    assert list(objects.values()) == [b"blob 18\0loose and harmless"]
    for name, content in (found | objects).items():
        for value in (key, key[::-1], shaped, word, "hunter2hunter2"):
            assert value.encode() not in content, name
    config = parse_yaml(found["config.yaml"].decode())
    assert config == {
        "mcp": {
            "servers": {
                "x": {"env": {"API_KEY": "REMOVED", "REGION": "europe-north"}},
                "y": {
                    "env": {"DB_PASSWORD": "REMOVED"},
                    "headers": {"Authorization": "Bearer REMOVED", "X": "${MY_TOKEN}"},
                },
            }
        }
    }
    assert found["memories/USER.md"] == b"- her key is ********\n- likes tea\n"
    assert found["picture.png"] == (home.root / "picture.png").read_bytes()
    assert set(done.masked_files) == {
        "config.yaml",
        "memories/USER.md",
        "logs/hermes.log",
    }
    other = Home(tmp_path / "other")
    restore(other, done.file, stamp="now")
    assert said(other)[-1] == "it uses ******** and ********"


@pytest.mark.parametrize(
    ("place", "section"),
    [
        ("x", "[core]\n"),
        ("objects/x", "[core]\n"),
        ("x", "[core] ;\f[user]\n"),
        ("x", "[core] ;\r[user]\n"),
        ("x", "[user]\n# \\\n[core]\n"),
    ],
)
def test_what_git_would_run_does_not_come_back(
    home: Home, tmp_path: Path, place: str, section: str
) -> None:
    proof = tmp_path / "ran"
    skill = home.skills / place
    skill.mkdir(parents=True)
    (home.skills / "HEAD").write_text("as if this were a git folder")
    subprocess.run(["git", "init", "-q", skill], check=True)
    with (skill / ".git" / "config").open("a", newline="") as config:
        config.write(f"{section}\tfsmonitor = touch {proof}\n")
    (skill / ".git" / "hooks" / "pre-commit").write_text(f"#!/bin/sh\ntouch {proof}\n")
    (skill / ".git" / "hooks" / "pre-commit").chmod(0o755)
    other = Home(tmp_path / "other")
    back = restore(other, back_up(home, tmp_path / "all.tar.gz").file, stamp="now")
    assert {
        f"skills/{place}/.git/config",
        f"skills/{place}/.git/hooks/pre-commit",
    } <= set(back.left_out)
    (other.skills / place / "a").write_text("new")
    subprocess.run(
        ["git", "-C", other.skills / place, "status"], check=False, capture_output=True
    )
    assert not proof.exists()


def test_a_git_folder_of_ours_has_our_settings_whatever_it_held(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "config").write_text("[core]\n\tfsmonitor = touch /tmp/x\n")
    git_folder.make(
        folder, (), {"HEAD": "ref: refs/heads/main\n"}, "[core]\n\tbare = false\n"
    )
    assert (folder / "config").read_text() == "[core]\n\tbare = false\n"


@pytest.mark.parametrize(
    "name", ["a/" * 5_000 + "x", "a/" * 100 + "x", "x" * 5_000, "a/" * 61 + "x"]
)
def test_a_name_that_is_too_deep_or_long_is_refused(
    home: Home, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "deep.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        member(archive, "state.db")
        member(archive, name)
    with pytest.raises(HermesError, match="longer or deeper"):
        restore(home, source, stamp="now")
    assert said(home) == ["remember the fjord"]
