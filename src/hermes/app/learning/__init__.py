"""What Hermes learns while it works: reviews, imports and the tools for memory and skills."""
