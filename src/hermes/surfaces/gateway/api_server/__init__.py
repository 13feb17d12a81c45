"""OpenAI's API, served by Hermes: chat completions, responses and models, with sessions."""
