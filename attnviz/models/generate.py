"""Continue a text token by token: the loop that both engines share. It needs neither torch nor a lock.

An engine brings a `Run`: ids of the whole text so far in, a `Pass` out. Whether it has a cache is its own affair.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from attnviz.core.arguments import whole
from attnviz.core.attention.masks import causal_rule
from attnviz.core.attention.textbook import softmax
from attnviz.core.generation.sampling import Choice, Sampling, choose
from attnviz.core.generation.step import Step
from attnviz.core.trace.records import LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches, allowed_cells
from attnviz.core.trace.trace import Trace
from attnviz.models.texts import check_text
from attnviz.models.tokens import label_of, label_tokens, tokenize

REACH = 8  # ids back that can have a part in the same character, amply


@dataclass(frozen=True, eq=False)
class Pass:
    """What one run of a model left behind.

    Attributes:
        logits: (vocabulary,) of the token after the last one, read-only.
        seconds: it took; `cache_bytes`: the cache holds now.
        records: gives layer -> `LayerRecord` of all tokens so far, when asked.
    """

    logits: np.ndarray
    seconds: float
    cache_bytes: int
    records: Callable[[], Mapping[int, LayerRecord]]


Run: TypeAlias = Callable[[Sequence[int]], Pass]


@dataclass(frozen=True, eq=False)
class Beginning:
    """What a text is continued from, and by which rules.

    Attributes:
        text: of the visitor; `tokens`: what the model reads of it.
        n_new: most tokens to add; `ends`: ids after which nothing follows; `n_candidates`: rivals to name at each step.
    """

    text: str
    tokens: tuple[Token, ...]
    n_new: int
    ends: frozenset[int]
    sampling: Sampling
    switches: Switches
    n_candidates: int


def end_ids(eos: int | Sequence[int] | None) -> frozenset[int]:
    """Return the ids that end a text, from `eos_token_id` of a configuration.

    >>> sorted(end_ids([2, 7])), sorted(end_ids(None))
    ([2, 7], [])
    """
    return frozenset(() if eos is None else (eos,) if isinstance(eos, int) else eos)


def begin(
    tokenizer: Any,
    info: ModelInfo,
    text: str,
    n: int,
    *,
    ends: frozenset[int],
    sampling: Sampling,
    switches: Switches,
    n_candidates: int,
) -> Beginning:
    """Check everything that can be checked before the first run.

    Raises:
        ValueError: a model that doesn't continue texts, a number out of range, no visible text, no room for another
            token, or looks that can't be forbidden.
    """
    check_model(info)
    check_text(text)
    n, n_candidates = whole("n", n, least=1), whole("candidates", n_candidates, least=1)
    tokens = tokenize(tokenizer, text)
    if not tokens:
        raise ValueError("this model's tokenizer makes no token of that text; type some letters")
    room = info.limit - len(tokens)
    if room < 1:
        raise ValueError(
            f"the text has {len(tokens)} tokens and {info.title} takes {info.limit} in all, so there is no room "
            "for another one: shorten the text"
        )
    n_new = min(n, room)
    _check_forbid(switches, info, len(tokens) + n_new)
    return Beginning(text, tokens, n_new, ends, sampling, switches, n_candidates)


def check_cache(cache: bool, switches: Switches) -> None:
    """Raise ValueError if keys and values are to be kept although the switches let them change."""
    if cache and switches.causal is False:
        raise ValueError(
            "with later tokens allowed the keys and values of earlier ones change with every new token, "
            "so they can't be kept: use cache=False"
        )


def check_model(info: ModelInfo) -> None:
    """Raise ValueError unless the model continues a text and its attention can be listened to."""
    if len(info.parts) > 1:
        raise ValueError(f"{info.title} writes a second text beside the first; only models with one text continue it")
    if not info.predicts or not info.causal:
        raise ValueError(f"{info.title} predicts no next token, so it can't continue a text")
    if "scores" in info.cannot:
        raise ValueError(f"{info.title} can't be shown while it writes: only its finished maps can be had")


def steps(tokenizer: Any, info: ModelInfo, beginning: Beginning, run: Run) -> Iterator[Step]:
    """Yield a `Step` for each new token, until the text ends or `n_new` tokens are there.

    Nothing is held between two steps: whoever stops asking needn't tidy up.
    """
    tokens = list(beginning.tokens)  # grows; steps look at its first entries only
    writer = Writer(tokenizer, beginning.text, [token.id for token in tokens])
    random = np.random.default_rng(beginning.sampling.seed)
    for _ in range(beginning.n_new):
        done = run([token.id for token in tokens])
        choice = choose(done.logits, beginning.sampling, random.random())
        probabilities = softmax(done.logits.astype(np.float64))  # (vocabulary,)
        token = writer.add(choice.id)
        yield Step(
            token=token,
            candidates=_candidates(tokenizer, choice, probabilities, beginning.n_candidates),
            n_allowed=choice.n_allowed,
            rank=choice.rank,
            probability=float(probabilities[choice.id]),
            logits=done.logits,
            seconds=done.seconds,
            cache_bytes=done.cache_bytes,
            make_trace=partial(_trace, tokenizer, info, beginning, tokens, len(tokens), done),
        )
        tokens.append(token)
        if token.id in beginning.ends:
            return


class Writer:
    """Turns new ids into tokens with their letters, which may come only with a later id.

    Args:
        tokenizer: of transformers.
        text: before the first new token; `ids`: its tokens.
    """

    def __init__(self, tokenizer: Any, text: str, ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(ids)
        self._length = len(text)
        self._from, self._read = 0, len(self._ids)  # ids that give the last piece its spaces; ids whose letters are out
        added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
        self._special = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)

    def add(self, id: int) -> Token:
        """Return the next token. Its text is empty as long as it ends in the middle of a character."""
        self._ids.append(id)
        piece = self._letters()
        start, self._length = self._length, self._length + len(piece)
        label = label_tokens(self._tokenizer, self._ids[-REACH:])[-1]
        return Token(len(self._ids) - 1, id, label, piece, start, self._length, id in self._special)

    def _letters(self) -> str:
        """Return what the ids that aren't out yet add to the text.

        A piece alone may lose its space, so the letters are the difference between two decoded texts that both begin
        with the piece before.

        Source: text-generation-inference (Hugging Face), `decode_token`.
        """
        before = self._decode(self._ids[self._from : self._read])
        now = self._decode(self._ids[self._from :])
        if now.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        if len(now) > len(before):  # else the id has no letters, and the piece before stays the one before
            self._from, self._read = self._read, len(self._ids)
        return now[len(before) :]

    def _decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def up_to(switches: Switches, n_tokens: int) -> Switches:
    """Return the switches without the forbidden looks from or at tokens that aren't there yet."""
    return replace(switches, forbid=frozenset(look for look in switches.forbid if max(look[2:]) < n_tokens))


def _check_forbid(switches: Switches, info: ModelInfo, n_tokens: int) -> None:
    """Raise ValueError if a forbidden look isn't among those tokens, or would leave a token nothing to look at."""
    switches.check_forbid(info.layers, info.n_heads, n_tokens, n_tokens)
    queries = np.array(sorted({query for *_, query, _ in switches.forbid}), np.int64)
    for layer in info.layers if len(queries) else ():
        for head in range(info.n_heads):
            allowed_cells(causal_rule(n_tokens, n_tokens), switches, layer, head, queries, np.arange(n_tokens))


def _candidates(tokenizer: Any, choice: Choice, probabilities: np.ndarray, n: int) -> list[tuple[str, float]]:
    return [(label_of(tokenizer, int(i)), float(probabilities[i])) for i in choice.order[:n]]


def _trace(
    tokenizer: Any, info: ModelInfo, beginning: Beginning, tokens: Sequence[Token], n_tokens: int, done: Pass
) -> Trace:
    read = tokens[:n_tokens]
    labels = label_tokens(tokenizer, [token.id for token in read])  # a character may have become whole since
    read = tuple(replace(token, label=label) for token, label in zip(read, labels, strict=True))
    return Trace(
        text=beginning.text + "".join(token.text for token in read[len(beginning.tokens) :]),
        model=info,
        records={info.parts[0]: done.records()},
        part_tokens={info.parts[0]: (read, read)},
        switches=up_to(beginning.switches, n_tokens),
        next_logits=done.logits,
        label_of=partial(label_of, tokenizer),
        seconds=done.seconds,
    )
