"""What every layer uses: errors, files, formatting, progress, Ctrl-C."""
