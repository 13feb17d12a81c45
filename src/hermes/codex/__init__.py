"""Codex as a second engine: a session's turns are run by a real `codex app-server`, behind the same door as ours.

Read it in this order: `wire` (messages), `client` (the process and its requests), `items` and `projector`
(what codex did, as events), `asking`, `elicitation` and `approver` (what codex asks, and who decides), `session`
(turns), `runtime` (the port that `app` chooses), `migrate` (codex's config.toml), `lend` (tools for codex), `switch`
(on, off, status). Nothing here is imported before the first turn that codex runs.
"""
