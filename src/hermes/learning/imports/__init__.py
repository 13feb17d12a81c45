"""Reading what other agents have kept: their conversations, as ours. Nothing of a source is ever written to."""
