"""Behaviours that datasets are made of: trained online with soft actor-critic, kept as small numpy actors."""
