"""Slack, through slack_sdk and Socket Mode."""
