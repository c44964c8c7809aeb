"""Token labels that a person can read, and each token's place in the user's text.

A vocabulary spells its pieces for a machine: `Ġwhat`, `▁what`, `##ing`, `<0xE6>`, or `æ`, `Ŀ`, `±` for the bytes of 東.
Labels are made from the bytes behind those spellings: `·what`, `##ing`, `東 1/3` for one byte of a character, `‹E6 9D›`
for bytes that make none. How a tokenizer spells is read from its parts, never guessed from its class. Needs no library
of its own: it is handed a tokenizer of transformers that is backed by `tokenizers`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from attnviz.core.text.visible import as_bytes, visible
from attnviz.core.trace.records import Token
from attnviz.models.pieces import EMPTY, Piece, backend_of, read_pieces, spelling_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]
Touched = tuple[str, int, int, int]  # a character, the first and last of its bytes that a piece has, how many it has


def tokenize(tokenizer: "PreTrainedTokenizerBase", text: str, *, add_special_tokens: bool = True) -> tuple[Token, ...]:
    """Split a text into the tokens that the model will see, nothing cut, padded, dropped or merged.

    Args:
        tokenizer: a fast tokenizer of transformers.
        text: what the user typed.
        add_special_tokens: let the tokenizer add its own, such as `[CLS]` in front.

    Returns:
        One Token for each id, in order; none when the text is empty and the tokenizer adds none. `text[start:end]` is
        what a token covers: the whole character for a byte of it, with its leading space if it has one, nothing
        (start == end) for what the tokenizer put in itself. Special tokens are marked so, added or typed by the user.

    Raises:
        ValueError: the text is no string or holds half a character; the tokenizer isn't a fast one.
    """
    _check_text(text)
    backend_of(tokenizer)
    encoding = tokenizer(
        text,
        add_special_tokens=add_special_tokens,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        truncation=False,
        padding=False,
        verbose=False,  # no remark on the length: the caller knows the model's limit and says it better
    )
    ids: list[int] = encoding["input_ids"]
    pieces = read_pieces(tokenizer, ids)
    added = [bool(mark) for mark in encoding["special_tokens_mask"]]
    spans = settle_spans(text, [piece.content for piece in pieces], encoding["offset_mapping"], added)
    return tuple(
        Token(index, id_, label, text[start:end], start, end, piece.special)
        for index, (id_, label, piece, (start, end)) in enumerate(
            zip(ids, _labels_of_pieces(pieces), pieces, spans, strict=True)
        )
    )


def label_tokens(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> list[str]:
    """Label a sequence of ids, each byte of a character by the character that its neighbours complete.

    Args:
        tokenizer: a fast tokenizer of transformers.
        ids: vocabulary numbers, for example the ones a model generated; `‹id 49200›` labels one without an entry, as
            models with padded embeddings have.

    Returns:
        One label for each id, none of them empty: `["·東 1/3", "東 2/3", "東 3/3"]`.

    Raises:
        ValueError: the tokenizer isn't a fast one.
    """
    return _labels_of_pieces(read_pieces(tokenizer, ids))


def label_of(tokenizer: "PreTrainedTokenizerBase", id: int) -> str:
    """Label one entry of the vocabulary on its own, as for a guess at the next token.

    Args:
        tokenizer: a fast tokenizer of transformers.
        id: vocabulary number, with or without an entry.

    Returns:
        The label; bytes that make no character by themselves are written in hexadecimal, `‹E6 9D›`.

    Raises:
        ValueError: the tokenizer isn't a fast one.
    """
    return label_tokens(tokenizer, [id])[0]


def describe_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> str:
    """Name a tokenizer's class and how it spells, such as `GPT2Tokenizer, byte-level BPE`.

    Raises:
        ValueError: the tokenizer isn't a fast one.
    """
    spelling = spelling_of(tokenizer)
    kind = f"byte-level {spelling.algorithm}" if spelling.byte_level else spelling.algorithm
    extras = [f"{spelling.space} for spaces"] if spelling.space else []
    extras += ["byte fallback"] if spelling.byte_fallback else []
    return f"{type(tokenizer).__name__}, {kind}" + (f" with {' and '.join(extras)}" if extras else "")


def settle_spans(text: str, contents: Sequence[bytes], offsets: Sequence[Span], added: Sequence[bool]) -> list[Span]:
    """Find the part of the text that each token covers, where the tokenizer's own offsets are not true to it.

    Corrected are: a space the tokenizer inserted, which borrows the next token's first character
    (huggingface/tokenizers#1018); spaces trimmed off a token that has them, or left on a special token that has none;
    the bytes of several characters that all claim the whole group; tokens the tokenizer added, which all sit at 0.

    Args:
        text: what the user typed.
        contents: what each token stands for, in UTF-8, a space as a space.
        offsets: (start, end) of each token as the tokenizer gave them, in characters.
        added: True for tokens that the tokenizer put in itself.

    Returns:
        (start, end) of each token; added tokens are empty and sit where the token before them ends.

    >>> settle_spans("中文", [b" ", "中文".encode()], [(0, 1), (0, 2)], [False, False])
    [(0, 0), (0, 2)]
    """
    spans: list[Span] = []
    reached = 0  # where the token before ends
    for i, (content, (start, end), is_added) in enumerate(zip(contents, offsets, added, strict=True)):
        if is_added:
            spans.append((reached, reached))
            continue
        has_next = i + 1 < len(offsets) and not added[i + 1]
        neighbours = (offsets[i - 1] if i else None, offsets[i + 1] if has_next else None)
        if content.strip(b" ") and (start, end) in neighbours:
            spans.append((start, end))  # several claim it, and share it out below
            reached = max(reached, end)
            continue
        if has_next and not content.strip(b" "):  # an inserted space has no place of its own
            end = max(start, min(end, offsets[i + 1][0]))
        spans.append(_fit_spaces(text, content, (start, end), reached))
        reached = max(reached, end)
    return _share_out(text, contents, spans)


# From pieces to labels


def _labels_of_pieces(pieces: Sequence[Piece]) -> list[str]:
    labels: list[str] = []
    for needs_neighbours, run in groupby(pieces, key=lambda piece: piece.label is None):
        run_of_pieces = list(run)
        if needs_neighbours:
            labels += map(_label_of_chars, _chars_touched([piece.content for piece in run_of_pieces]))
        else:
            labels += [piece.label or EMPTY for piece in run_of_pieces]
    return labels


def _chars_touched(contents: Sequence[bytes]) -> Iterator[list[Touched]]:
    """Yield for each piece of a text the characters that it has a byte of."""
    text = b"".join(contents).decode(errors="surrogateescape")
    i = at = start = 0  # the character in turn, the byte it starts at, the byte the piece starts at
    for content in contents:
        end = start + len(content)
        touched: list[Touched] = []
        while content and at < end:
            size = len(as_bytes(text[i]))
            touched.append((text[i], max(start - at, 0) + 1, min(end - at, size), size))
            if at + size > end:
                break  # the next piece goes on with this character
            i, at = i + 1, at + size
        yield touched
        start = end


def _label_of_chars(touched: Sequence[Touched]) -> str:
    label = ""
    for is_whole, group in groupby(touched, key=lambda char: char[1] == 1 and char[2] == char[3]):
        chars = list(group)
        parts = [visible("".join(char[0] for char in chars))] if is_whole else [_label_of_part(*char) for char in chars]
        for part in parts:  # a space needs no plus: `·東 1/3`, but `ab + 東 1/3`
            label += part if not label.strip("·") else f" + {part}"
    return label or EMPTY


def _label_of_part(char: str, first: int, last: int, size: int) -> str:
    which = f"{first}" if first == last else f"{first}-{last}"
    return f"{visible(char)} {which}/{size}"


# Places in the text


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise ValueError(f"expected a text (str), got {type(text).__name__}")
    half = re.search("[\ud800-\udfff]", text)
    if half:
        raise ValueError(
            f"the text holds half a character (U+{ord(half[0]):04X} at position {half.start()}), as happens when an "
            f"emoji is cut in two, and no tokenizer can read it: please delete it or type it again"
        )


def _fit_spaces(text: str, content: bytes, span: Span, reached: int) -> Span:
    """Give a token the leading spaces that it stands for, and take from a special token those that it doesn't."""
    start, end = span
    covered = text[start:end]
    if covered.strip().encode() == content:
        return end - len(covered.lstrip()), start + len(covered.rstrip())
    missing = len(content) - len(content.lstrip(b" ")) - (len(covered) - len(covered.lstrip()))
    while missing > 0 and start > reached and text[start - 1] == " ":
        start, missing = start - 1, missing - 1
    return start, end


def _share_out(text: str, contents: Sequence[bytes], spans: Sequence[Span]) -> list[Span]:
    """Split a span that several tokens claim between them, where their bytes together are the text there."""
    settled: list[Span] = []
    at = 0
    for (start, end), run in groupby(spans):
        n_tokens = len(list(run))
        group = contents[at : at + n_tokens]
        if n_tokens > 1 and end - start > 1 and b"".join(group) == text[start:end].encode():
            settled += _spans_by_bytes(group, start)
        else:
            settled += [(start, end)] * n_tokens
        at += n_tokens
    return settled


def _spans_by_bytes(contents: Sequence[bytes], start: int) -> Iterator[Span]:
    """Yield each piece's span by counting the characters that it has a byte of, the first one at `start`."""
    end = start
    for touched in _chars_touched(contents):
        end += sum(first == 1 for _, first, _, _ in touched)
        yield end - len(touched), end
