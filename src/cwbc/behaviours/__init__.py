"""Behaviours that datasets are made of: trained online with soft actor-critic, kept as small numpy actors."""

from cwbc.behaviours.behaviour import Behaviour, load
from cwbc.behaviours.rollouts import measure
from cwbc.behaviours.sac import Settings

__all__ = ["Behaviour", "Settings", "load", "measure"]
