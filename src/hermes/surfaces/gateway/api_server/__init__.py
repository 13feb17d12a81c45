"""Hermes behind the API of OpenAI: chat completions, responses and models, with sessions."""
