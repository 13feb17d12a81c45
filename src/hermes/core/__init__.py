"""What Hermes is, without the world: ports to collaborators and, later, the turn."""
