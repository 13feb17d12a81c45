"""Running Python code from the model, which can call tools."""
