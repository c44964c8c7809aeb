"""A folder's tokenizer: a fast one, with words of its own, whose numbers the model has a vector for."""

from pathlib import Path
from typing import Any

import transformers

from attnviz.models.texts import first_line


def fast_tokenizer(folder: Path, title: str, n_rows: int | None) -> Any:
    """Return the tokenizer in a folder.

    Args:
        folder: where its files lie.
        title: what to call the model when something is wrong.
        n_rows: how many tokens the model has a vector for; None if that can't be said.

    Raises:
        ValueError: none that can be read, one that doesn't say which letters a token covers, or another model's.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        words = tokenizer.get_vocab()
    except Exception as error:  # a damaged file raises all sorts of errors
        raise ValueError(f"{title} can't be loaded: {first_line(error)}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"{title} has no fast tokenizer (tokenizer.json), and only those say which letters a token covers"
        )
    last = max(words.values(), default=-1)
    if n_rows is not None and last >= n_rows:
        word = next(word for word, number in words.items() if number == last)
        raise ValueError(
            f"{title} has a tokenizer that isn't its own: its last token {word!r} has the number {last}, and the model "
            f"has a vector for {n_rows} tokens, numbered from 0"
        )
    return tokenizer
