"""The NumPy engine against the torch engine: seconds for two lengths of text, and how far their numbers are apart."""

from functools import partial
from typing import Any

from attnviz.core.compare.agreement import largest_probability_difference, largest_weight_difference
from tests.benchmarks.timing import in_turn, median, ratio
from tests.benchmarks.tracing import text_of

TEXT = "The animal didn't cross the street because it was too tired."  # 13 tokens for SmolLM2


def measure() -> dict[str, Any]:
    """Return seconds, ratios and largest differences for both models of the catalogue."""
    import attnviz

    found = {}
    for name in ("smollm2", "minilm"):
        torch, scratch = attnviz.load(name), attnviz.load(name, engine="numpy")
        for text, rounds in ((TEXT, 21), (text_of(torch, 512), 5)):
            seconds = in_turn(
                rounds,
                torch=partial(torch.trace, text, max_tokens=512),
                numpy=partial(scratch.trace, text, max_tokens=512),
            )
            one, other = torch.trace(text, max_tokens=512), scratch.trace(text, max_tokens=512)
            row = {
                "torch_seconds": median(seconds["torch"]),
                "numpy_seconds": median(seconds["numpy"]),
                "numpy_over_torch": ratio(seconds["numpy"], seconds["torch"]),
                "largest_weight_difference": largest_weight_difference(one, other),
            }
            if one.model.predicts:
                row["largest_probability_difference"] = largest_probability_difference(one, other)
            found[f"{name}, {len(one.tokens)} tokens"] = row
    return found
