"""How much of an item is run: as the paper has it, or less, which the report has to say."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping

from cwbc.dataset_summary import DatasetSummary
from cwbc.datasets import made
from cwbc.evidence.item import FULL, STEPS, Item
from cwbc.evidence.naming import Datasets
from cwbc.grids.cells import Scale
from cwbc.wording import counted, measured_in_words, span


@dataclasses.dataclass(frozen=True)
class Extent:
    """What of an item is run, on what, how large."""

    item: Item  # the whole of it
    data: Datasets
    quick: bool
    scale: Scale
    changes: Mapping[str, str]  # by option: what is asked for otherwise than the item has it

    @property
    def folder(self) -> str:
        """The name of the report's directory; one about something else has another."""
        name = self.item.name + "-d4rl" * (self.data == "d4rl") + "-quick" * self.quick
        name += f"-{self.scale.precision}" if self.scale.precision else ""
        text = json.dumps(self.changes, sort_keys=True)
        return f"{name}-part-{hashlib.sha256(text.encode()).hexdigest()[:6]}" if self.changes else name

    @property
    def is_small(self) -> bool:
        """Whether less is trained, or on less data, than in the paper."""
        if not self.item.variants:
            return self.quick and self.data == "ours"
        return self.quick or self.scale.seeds < FULL.seeds or (self.scale.steps or STEPS) < STEPS

    def remarks(self, datasets: Mapping[str, DatasetSummary]) -> list[str]:
        """What one must know to read the numbers that came of these datasets."""
        remarks = []
        if self.item.variants:
            spread = "± is the deviation over seeds, as in the paper"
            remarks += [
                measured_in_words({self.scale.seeds}, {self.scale.episodes}, spread),
                "Scores are normalized as in D4RL and asked for at 1x expert unless said otherwise.",
            ]
        if self.changes:
            options = " and ".join(f"{option} {value}" for option, value in self.changes.items())
            remarks.append(f"This is the item with {options}, not as it is by default.")
        if self.is_small:
            kind = "quick" if self.quick else "small"
            remarks.append(
                f"This is a {kind} run: {self._size(len(datasets))}. It shows that all works; its verdicts "
                "are no evidence about the paper."
            )
        if self.data == "ours":
            sizes = span(dataset.steps for dataset in datasets.values())
            remarks.append(
                f"The datasets are ours ({sizes} steps), made after D4RL's recipes by other behaviours: "
                "published scores are for orientation."
            )
        return remarks

    def _size(self, datasets: int) -> str:
        """In what a small run is less than the paper's."""
        few = f"{datasets} of {len(self.item.datasets)} datasets"
        if not self.item.variants:
            return f"{few}, those made for it with {made.DEFAULT_SIZE:,} steps instead of D4RL's sizes"
        trained = f"{counted(self.scale.seeds, 'seed')}, {counted(self.scale.steps or STEPS, 'step')}"
        if self.quick:
            return f"{few}, {trained} of small networks, {counted(self.scale.episodes, 'episode')}"
        return f"{trained}, where the paper has {FULL.seeds} and {STEPS:,}"
