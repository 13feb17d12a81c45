"""Learning: reviews of conversations, imports, and the tools for memory and skills."""
