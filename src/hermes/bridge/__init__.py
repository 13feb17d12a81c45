"""Sends events out of this process: to a dashboard, to readers in a terminal, to webhooks and as traces."""
