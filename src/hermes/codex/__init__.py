"""Codex as a second engine: a real `codex app-server` runs a session's turns, behind the same port as our own loop.

Read it in this order: `wire` (messages), `client` (the process and its requests), `items` and `projector`
(what codex did, as events), `approvals`, `elicitation` and `approver` (what codex asks, and who decides), `session`
(turns), `runtime` (the port that `app` chooses), `codex_config` and `config_block` (codex's config.toml),
`tool_lending` (tools for codex), `engine_switch`
(on, off, status). Nothing here is imported before the first turn that codex runs.
"""
