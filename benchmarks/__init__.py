"""Measurements of Hermes, each a module with `main(argv)`: `python -m benchmarks [name] [options]`."""
