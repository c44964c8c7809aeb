"""A trace against a plain fused pass and against eager attention with all its maps, on SmolLM2-135M-Instruct."""

import gc
import statistics
from functools import partial
from typing import Any

import torch

from tests.benchmarks.timing import in_turn, median, peak_of, ratio

SENTENCE = "The quick brown fox jumps over the lazy dog while seven wizards quietly brew a potion. "

MEMORY = """
import json, sys
import attnviz
from tests.benchmarks.timing import peak_while
from tests.benchmarks.tracing import run
engine = attnviz.load("smollm2")
run(engine, "plain", 64), run(engine, "eager", 64)
print(json.dumps(peak_while(lambda: run(engine, sys.argv[1], int(sys.argv[2])))))
"""


def text_of(engine: Any, n_tokens: int) -> str:
    """Return a text that has at least so many tokens."""
    return SENTENCE * (n_tokens // 15 + 2)


def run(engine: Any, how: str, n_tokens: int) -> Any:
    """Run the model once and return what it leaves: "plain", "trace", or "eager" with all maps."""
    if how == "trace":
        return engine.trace(text_of(engine, n_tokens), max_tokens=n_tokens)
    model = engine.model
    ids = engine.tokenizer(text_of(engine, n_tokens), return_tensors="pt")["input_ids"][:, :n_tokens]
    model.set_attn_implementation("eager" if how == "eager" else "sdpa")
    try:
        with torch.inference_mode():
            return model(input_ids=ids, use_cache=False, logits_to_keep=1, output_attentions=how == "eager")
    finally:
        model.set_attn_implementation("attnviz")


def measure() -> dict[str, Any]:
    """Return seconds, ratios and megabytes for several lengths."""
    import attnviz

    engine = attnviz.load("smollm2")
    found: dict[str, Any] = {"model": engine.info.title, "revision": engine.info.revision}
    for n_tokens, rounds in ((256, 9), (1024, 5), (2048, 3)):
        ways = ("plain", "trace") if n_tokens == 256 else ("plain", "trace", "eager")
        seconds = in_turn(rounds, **{how: partial(run, engine, how, n_tokens) for how in ways})
        gc.collect()
        row: dict[str, Any] = {f"{how}_seconds": median(seconds[how]) for how in ways}
        row["trace_over_plain"] = ratio(seconds["trace"], seconds["plain"])
        if "eager" in seconds:
            row["eager_over_trace"] = ratio(seconds["eager"], seconds["trace"])
            peaks = {how: statistics.median(peak_of(MEMORY, how, str(n_tokens)) for _ in range(3)) for how in ways}
            row |= {f"{how}_peak_mb": round(peak, 1) for how, peak in peaks.items()}
            row["trace_extra_mb"] = round(peaks["trace"] - peaks["plain"], 1)
            row["eager_extra_mb"] = round(peaks["eager"] - peaks["plain"], 1)
        found[f"{n_tokens} tokens"] = row
    return found
