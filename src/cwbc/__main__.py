"""`python -m cwbc` is the `cwbc` command."""

from cwbc.cli import main

main()
