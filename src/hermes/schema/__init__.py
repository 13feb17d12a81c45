"""Ids, messages, tool calls and events: frozen data, no behaviour."""
