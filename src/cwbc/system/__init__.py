"""Errors, files, formatting, progress and Ctrl-C, which every layer uses."""
