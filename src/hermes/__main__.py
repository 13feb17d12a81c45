"""`python -m hermes` is `hermes`."""

import sys

from hermes.surfaces.cli import main

sys.exit(main())
