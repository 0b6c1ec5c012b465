"""Behaviours that datasets are made of: trained online with soft actor-critic, kept as small numpy actors."""

TASKS = ("hopper", "walker2d", "halfcheetah")  # the robots whose behaviours come with the package
QUALITIES = ("random", "medium", "medium-replay", "medium-expert", "expert")  # what can be made of them
