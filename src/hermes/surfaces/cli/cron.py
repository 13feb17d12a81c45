"""`hermes cron`: jobs that run at certain times; making, looking at, changing and running them."""

import argparse

from hermes.surfaces.cli.parser import Parser, add_action

_EXAMPLES = """\
examples:
  hermes cron add "every weekday at 9" "summarize what is new in my inbox folder"
  hermes cron add "every 2 hours" "check the disk" --deliver telegram:123456 --budget '$0.10'
  hermes cron add "0 8 1 * *" "write the monthly report" --name report --deliver file:~/report.md
  hermes cron list                      every job, and when it runs next
  hermes cron next "on the last friday of each month at 16:00"
  hermes cron history report            what became of each run, and why
  hermes cron run report                now, here
  hermes cron daemon                    run what is due; `hermes gateway run` does it too
"""
_CATCH_UP = ("skip", "once", "all")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    add = add_action(actions, "add", "make a job")
    add.add_argument(
        "schedule",
        metavar="SCHEDULE",
        help="when: in words, an interval or a cron expression",
    )
    add.add_argument("prompt", metavar="PROMPT", help="what to do")
    _options(add)
    add.add_argument("--json", action="store_true", help="print JSON")
    every = add_action(actions, "list", "list the jobs and when they run next")
    every.add_argument("--all", action="store_true", help="also those that have ended")
    every.add_argument("--json", action="store_true", help="print JSON")
    for name, summary in (
        ("show", "show a job, its next runs and its last ones"),
        ("pause", "let a job rest"),
        ("resume", "let a job run again"),
        ("remove", "remove a job; what it did stays in the history"),
    ):
        action = add_action(actions, name, summary)
        action.add_argument(
            "job", metavar="JOB", help="its id, the beginning of it, or its name"
        )
        action.add_argument("--json", action="store_true", help="print JSON")
    edit = add_action(actions, "edit", "change a job")
    edit.add_argument(
        "job", metavar="JOB", help="its id, the beginning of it, or its name"
    )
    edit.add_argument("--schedule", metavar="SCHEDULE", help="another time")
    edit.add_argument("--prompt", metavar="PROMPT", help="something else to do")
    _options(edit)
    edit.add_argument("--json", action="store_true", help="print JSON")
    run_now = add_action(
        actions,
        "run",
        "run a job now, here, and print its answer; exit code 3 if a call was not approved",
    )
    run_now.add_argument(
        "job", metavar="JOB", help="its id, the beginning of it, or its name"
    )
    history = add_action(
        actions, "history", "what became of each run, the newest first"
    )
    history.add_argument(
        "job", metavar="JOB", nargs="?", default="", help="one job; all otherwise"
    )
    history.add_argument(
        "--limit", metavar="NUMBER", type=int, default=20, help="how many (20)"
    )
    history.add_argument("--json", action="store_true", help="print JSON")
    coming = add_action(actions, "next", "when a job runs, or a schedule would")
    coming.add_argument(
        "what", metavar="JOB|SCHEDULE", help="a job, or a schedule in quotes"
    )
    coming.add_argument(
        "--zone", metavar="ZONE", default="", help="such as Europe/Berlin"
    )
    coming.add_argument(
        "--count", metavar="NUMBER", type=int, default=5, help="how many times (5)"
    )
    coming.add_argument("--json", action="store_true", help="print JSON")
    for name in ("daemon", "run-loop"):
        summary = (
            "run what is due, until it is stopped"
            if name == "daemon"
            else "the same as daemon"
        )
        add_action(actions, name, summary)


def _options(parser: argparse.ArgumentParser) -> None:
    """What a job can have; what is not given stays as it is, or as the settings say."""
    parser.add_argument("--name", metavar="NAME", help="what you call it")
    parser.add_argument(
        "--zone",
        metavar="ZONE",
        help="time zone, such as Europe/Berlin; this machine's otherwise",
    )
    parser.add_argument(
        "--deliver",
        metavar="TARGET",
        help="none, file:PATH, session:ID, or a chat: telegram:123456",
    )
    parser.add_argument(
        "--catch-up", choices=_CATCH_UP, help="what becomes of runs that were missed"
    )
    parser.add_argument(
        "--jitter", metavar="TIME", help="start up to so much later, such as 5m"
    )
    parser.add_argument(
        "--timeout", metavar="TIME", help="stop it after so long, such as 10m"
    )
    parser.add_argument(
        "--budget",
        metavar="AMOUNT",
        help="the most one run may use: '$0.50' or '200k tokens'",
    )
    parser.add_argument(
        "--tools",
        metavar="SETS",
        help="only these toolsets: files,web; see `hermes tools`",
    )
    parser.add_argument(
        "--model", metavar="MODEL", help="another model, such as openai:gpt-5-mini"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", help="the folder it works in; this one otherwise"
    )
    parser.add_argument(
        "--times", metavar="NUMBER", type=int, help="end after so many runs"
    )


def run(args: argparse.Namespace) -> int:
    match args.action:
        case "run" | "daemon" | "run-loop":
            from hermes.surfaces.cli.cron_run import run as run_jobs

            return run_jobs(args)
        case "add" | "edit" | "pause" | "resume" | "remove":
            from hermes.surfaces.cli.cron_change import run as change

            return change(args)
        case _:
            from hermes.surfaces.cli.cron_list import run as look

            return look(args)
