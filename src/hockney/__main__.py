"""`python -m hockney`, which is what the start script calls."""

import sys

try:
    from hockney.cli import main

    main()
except KeyboardInterrupt:  # before the command line handles it
    sys.exit(3)
