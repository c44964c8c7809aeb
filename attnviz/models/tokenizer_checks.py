"""A folder's tokenizer: a fast one, read from whole files, whose numbers the model has a vector for."""

import json
from pathlib import Path
from typing import Any

import tokenizers
import transformers

from attnviz.models.texts import first_line
from attnviz.models.weight_files import few

WHOLE = "tokenizer.json"
_SAMPLE = "The cat's 3 naïve friends wait ...\n\n\tx = [1, 2]  東京 👍"


def fast_tokenizer(folder: Path, title: str, n_rows: int | None) -> tuple[Any, tuple[str, ...]]:
    """Return the tokenizer in a folder, and notes on it.

    Args:
        folder: where its files lie.
        title: what to call the model when something is wrong.
        n_rows: how many tokens the model has a vector for; None if that can't be said.

    Raises:
        ValueError: none that can be read, one that doesn't say which letters a token covers, or another model's.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if (folder / WHOLE).is_file():
            tokenizer = _as_written(tokenizer, folder)
        tokenizer(_SAMPLE)
    except Exception as error:  # a damaged file raises all sorts of errors
        if not (folder / WHOLE).is_file():
            raise ValueError(f"{title} has no {WHOLE} that says how it cuts up a text") from error
        raise ValueError(f"{title} can't be loaded: its tokenizer can't be read ({first_line(error)})") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"{title} has no fast tokenizer (tokenizer.json), and only those say which letters a token covers"
        )
    _check_files(tokenizer, folder, title)
    return tokenizer, () if n_rows is None else _within(tokenizer, n_rows, title)


def _within(tokenizer: Any, n_rows: int, title: str) -> tuple[str, ...]:
    """Take out special tokens that a model has no vector for and that no text needs, and return a note on them.

    Padding is often added without one, and transformers adds the unknown token of its own classes.
    """
    past = {word for word, number in tokenizer.get_vocab().items() if number >= n_rows}
    if not past:
        return ()
    if past <= set(tokenizer.get_added_vocab()):
        parts = json.loads(tokenizer.backend_tokenizer.to_str())
        parts["added_tokens"] = [each for each in parts["added_tokens"] if each["id"] < n_rows]
        tokenizer._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(parts))
    words = tokenizer.get_vocab()
    last = max([*words.values(), *tokenizer(_SAMPLE)["input_ids"]])
    if last >= n_rows:
        word = next((word for word, number in words.items() if number == last), "")
        raise ValueError(
            f"{title} has a tokenizer that isn't its own: its last token {word[:40]!r} has the number {last}, and the "
            f"model has a vector for {n_rows} tokens, numbered from 0"
        )
    return (f"The model has no vector for some words of its tokenizer, which are read as letters: {few(past)}.",)


def _as_written(tokenizer: Any, folder: Path) -> Any:
    """Return the tokenizer, or the one that tokenizer.json describes, if nothing names its class and the two differ.

    Without a name transformers goes by the kind of model, and makes a tokenizer of that kind from the words alone.
    """
    settings = folder / "tokenizer_config.json"
    if settings.is_file() and json.loads(settings.read_bytes()).get("tokenizer_class"):
        return tokenizer
    written = tokenizers.Tokenizer.from_file(str(folder / WHOLE))
    words = sorted(written.get_vocab())
    sample = " ".join([_SAMPLE, *words[:: len(words) // 50 + 1]])
    if tokenizer(sample)["input_ids"] == written.encode(sample).ids:
        return tokenizer
    return transformers.PreTrainedTokenizerFast(tokenizer_object=written)


def _check_files(tokenizer: Any, folder: Path, title: str) -> None:
    """Raise ValueError for files that aren't there: transformers makes a tokenizer that knows less, without a word."""
    if (folder / WHOLE).is_file():
        return
    known = type(tokenizer).vocab_files_names
    parts = [known[key] for key in ("vocab_file", "merges_file") if key in known] or ["tokenizer.model"]
    lost = [name for name in parts if not (folder / name).is_file()]
    if lost:
        raise ValueError(f"{title} has no {' and no '.join([WHOLE, *lost])}: it can't be said how it cuts up a text")
