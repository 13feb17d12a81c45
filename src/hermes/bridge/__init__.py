"""Carrying events out of this process: to a dashboard, to readers in a terminal, to webhooks, into traces."""
