"""The `cwbc` command."""
