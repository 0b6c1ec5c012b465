"""The method: from trajectories to policies, without disk or console."""
