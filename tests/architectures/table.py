"""The rows as Markdown, and what makes a row wrong. No digits that another machine would round differently."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import transformers

from tests.architectures.row import Row

PAGE = Path(__file__).parents[2] / "docs" / "architectures.md"
AGREE = 1e-5  # in float32

# The factors that aren't 1 / sqrt(d_head), read in each architecture's own code and settings.
FACTORS = (
    dict.fromkeys(("t5", "mt5", "umt5", "switch_transformers"), 1.0)  # never scales
    | dict.fromkeys(("gemma3n_text", "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"), 1.0)
    | dict.fromkeys(("embedding_gemma2", "embedding_gemma2_text"), 1.0)  # normalises q and k instead
    | dict.fromkeys(
        ("granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "granite4_vision"), 1.0
    )  # attention_multiplier
    | dict.fromkeys(("granite_docling", "granite_docling_text"), 1 / 64)  # the same
    | dict.fromkeys(
        ("gemma2", "gemma3", "gemma3_text", "t5gemma", "t5gemma2_encoder", "vaultgemma"), 256**-0.5
    )  # query_pre_attn_scalar
    | dict.fromkeys(("zamba", "zamba2"), 8**-0.5)  # d_head is 16, of twice the hidden size
    | {"inkling_text": 1 / 8}  # 1 / d_head
    | {"mistral4": 0.25 * (0.1 * math.log(128) + 1) ** 2}  # YaRN, squared
    | {"openai_privacy_filter": 8**-0.5 * (0.1 * math.log(32) + 1) ** 2}  # the same
)
SHOWN = ("recorded", "own maps")

HEAD = """# Architectures

Every class of transformers {version} that can be built at small size, with random weights, and what attnviz makes of
it. `make test-long` builds each of them, asks transformers alone for the same numbers, and fails unless this page is
what it finds; `python -m tests.architectures` writes it.

- **Maps**: layers with softmax attention, by part.
- **Read**: "q, k, v" are recorded in the pass, and scores, weights and switches are computed from them; "finished maps"
  are the model's own, for the reason given. "By both engines": the one in NumPy reads it too, and agrees.
- **Factor**: the model's own, in front of q k^T, in its first layer with attention.
- **From eager**: the largest difference of any weight of any head from `output_attentions=True`, in float32.
- **Switches**: causal on and off, scaling, temperature, ablate, forbid, each inside the whole pass.
- **16 tokens**: chosen greedily, with a cache, without one, by passes of transformers alone and by its `generate`.
"""


def markdown(rows: Sequence[Row]) -> str:
    """Return the whole page."""
    shown = [row for row in rows if row.outcome in SHOWN]
    refused = [row for row in rows if row.outcome == "refused"]
    unbuilt = [row for row in rows if row.outcome == "unbuilt"]
    parts = [
        HEAD.format(version=transformers.__version__),
        f"## Shown: {_count(shown)}\n\n" + _table(shown),
        f"## Refused: {_count(refused)}\n\nEach with one sentence.\n\n" + _grouped(refused),
        f"## Not built: {_count(unbuilt)}\n\nNo small model of these could be made here.\n\n" + _grouped(unbuilt),
    ]
    return "\n".join(parts)


def faults(row: Row) -> list[str]:
    """Return what is wrong with a row, [] if it is in order."""
    found = [f"{row.model_type} ({row.class_name}): {fault}" for fault in _faults(row)]
    return [" ".join(fault.split()) for fault in found]


def _faults(row: Row) -> Iterable[str]:
    said = [row.reason, row.scratch, *row.switches.values(), *(t for t in row.tokens.values() if isinstance(t, str))]
    yield from (text for text in said if text.startswith("traceback"))
    yield from (f"more than a sentence: {text!r}" for text in said if "\n" in text.strip() or text == "refused: ")
    if row.outcome == "refused" and not row.reason.strip():
        yield "refused without a word"
    if not row.scratch.startswith(("refused: ", "traceback")) and row.outcome != "unbuilt":
        off = row.scratch_difference
        if off is None or not off <= AGREE:
            yield f"from scratch its weights differ by {off} ({row.scratch})"
    if row.outcome in SHOWN:
        yield from _wrong_numbers(row)
        yield from (
            f"{name} {came}" for name, came in row.switches.items() if not came.startswith(("acts", "refused: "))
        )
        yield from _wrong_tokens(row)


def _wrong_numbers(row: Row) -> Iterable[str]:
    bound = AGREE if row.outcome == "recorded" else 0.0
    if row.difference is None:
        yield f"shown, and transformers alone says nothing: {row.oracle}"
    elif not row.difference <= bound:
        yield f"its weights differ by {row.difference:.1e}"
    if row.factor is not None:
        factor = FACTORS.get(row.model_type, row.d_head**-0.5)
        if not math.isclose(row.factor, factor, rel_tol=1e-4):
            yield f"its factor is {row.factor}, expected {factor}"


def _wrong_tokens(row: Row) -> Iterable[str]:
    tokens = row.tokens
    plain = tokens.get("plain")
    if plain is None:
        return
    if tokens["uncached"] != plain:
        yield f"without a cache it writes {tokens['uncached']} instead of {plain}"
    if isinstance(tokens["cached"], list) and tokens["cached"] != plain:
        yield f"with a cache it writes {tokens['cached']} instead of {plain}"
    if row.cached_difference is not None and not row.cached_difference <= AGREE:
        yield f"with a cache its weights differ by {row.cached_difference:.1e}"
    if _generate_says(row) is None:
        yield f"generate writes {tokens['generate']} instead of {plain}"


def _generate_says(row: Row) -> str | None:
    """Return how transformers' own `generate` compares, "" if it agrees, None if nothing explains what it writes."""
    tokens = row.tokens
    if tokens["generate"] == tokens["plain"]:
        return ""
    if tokens["generate uncached"] == tokens["plain"]:
        return "`generate` agrees without its cache only"
    if tokens["generate uncached"] == tokens.get("plain from 0"):
        return "`generate` numbers positions from 0, unlike the model"
    return f"`generate` can't: {tokens['generate uncached']}" if isinstance(tokens["generate uncached"], str) else None


def _table(rows: Sequence[Row]) -> str:
    lines = ["| model_type | class | maps | read | factor | from eager | switches | 16 tokens |", "|---" * 8 + "|"]
    for row in rows:
        cells = [row.model_type, row.class_name, row.layers, _read(row), _factor(row), _apart(row)]
        cells += [_switches(row), _tokens(row)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _read(row: Row) -> str:
    if row.outcome == "own maps":
        return f"finished maps: {_steady(row.reason)}"
    return "q, k, v; by both engines" if row.scratch == "read" else "q, k, v"


def _factor(row: Row) -> str:
    if row.factor is None:
        return ""
    usual = math.isclose(row.factor, row.d_head**-0.5, rel_tol=1e-4)
    return f"1/√{row.d_head}" if usual else f"{row.factor:.3g}"


def _apart(row: Row) -> str:
    if row.difference is None:
        return row.oracle
    return "0" if row.difference == 0 else "below 1e-5" if row.difference <= AGREE else f"{row.difference:.0e}"


def _switches(row: Row) -> str:
    off = [name for name, came in row.switches.items() if came != "acts"]
    return "all" if not off else "none" if len(off) == len(row.switches) else "all but " + ", ".join(off)


def _tokens(row: Row) -> str:
    uncached, cached = row.tokens["uncached"], row.tokens["cached"]
    if isinstance(uncached, str):
        return _unnamed(row, uncached)
    said = "the same" if isinstance(cached, list) else f"the same without a cache, with one {_unnamed(row, cached)}"
    return "; ".join(filter(None, (said, _generate_says(row))))


def _unnamed(row: Row, sentence: str) -> str:
    return _steady(sentence.replace(row.model_type, "it").replace("refused: it ", "refused: "))


def _steady(sentence: str) -> str:
    """Return a sentence without digits that another machine would round differently."""
    return re.sub(r"differ(s?) by up to [\d.e+-]+", r"differ\1", sentence)


def _grouped(rows: Sequence[Row]) -> str:
    groups = defaultdict(list)
    for row in rows:
        name = re.escape(row.model_type)
        sentence = re.sub(rf"^{name}\b|(?<=\(){name}(?=\))", "…", row.reason)
        groups[sentence].append(f"{row.model_type} ({row.class_name})" if row.class_name else row.model_type)
    most_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return "".join(f"- {sentence}: {', '.join(names)}\n" for sentence, names in most_first)


def _count(rows: Sequence[Row]) -> str:
    return f"{len({row.model_type for row in rows})} architectures, {len(rows)} classes"
