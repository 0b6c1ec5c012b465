"""Run directories: a training that may be killed at any moment and resumes with the same command."""
