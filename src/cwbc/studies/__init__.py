"""From a grid to the report about it: an item of the paper with its claims, or a grid of one's own."""
