"""Minari's datasets: found, read, downloaded, and written for others to use."""
