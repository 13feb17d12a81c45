"""What the surfaces at a terminal share: how text looks, how calls and questions read, signals, opening a session."""
