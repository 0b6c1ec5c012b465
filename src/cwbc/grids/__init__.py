"""Many trainings as one value: cells with directories of their own, run by engines that survive kills."""
