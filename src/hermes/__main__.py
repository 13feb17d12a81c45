"""`python -m hermes` is `hermes`."""

from hermes.surfaces.cli import program

program()
