"""The `cwbc` command, as a script and as `python -m cwbc`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run what the command line asks for."""
    # Ctrl-C while the next line imports ends the process, and not in a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from cwbc.cli import main

    main.main()


if __name__ == "__main__":
    main()
