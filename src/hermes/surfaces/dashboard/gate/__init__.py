"""The gate: who may reach what. Every request and every WebSocket passes it, and nothing else decides."""
