"""Codex as a second engine: a real `codex app-server` runs a session's turns, behind the same port as our own loop.

Read the modules in this order: `wire` (messages), `client` (the process and its requests), `items` and `projector`
(converting codex's work to events), `approvals`, `elicitation` and `approver` (codex's requests and who decides them),
`session` (turns), `runtime` (the port that `app` chooses), `codex_config` and `config_block` (codex's config.toml),
`tool_lending` (tools for codex), `engine_switch` (on, off, status). Nothing here is imported before codex runs its
first turn.
"""
