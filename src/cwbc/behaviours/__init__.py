"""Behaviour policies: trained online with soft actor-critic, stored as snapshots that generate datasets."""

TASKS = ("hopper", "walker2d", "halfcheetah")  # the robots whose snapshots come with the package
QUALITIES = ("random", "medium", "medium-replay", "medium-expert", "expert")  # of datasets
