"""Readers and writers of dataset files; every reader returns a Recording."""
