"""The places where people use Hermes. Each surface only reads events and calls `app`."""
