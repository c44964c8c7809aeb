"""A folder's tokenizer: a fast one, read from whole files, whose numbers the model has a vector for."""

import json
from pathlib import Path
from typing import Any

import tokenizers
import transformers

from attnviz.models.load.weight_files import few
from attnviz.models.texts import first_line

WHOLE = "tokenizer.json"
BERT_SETTINGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")  # these change what tokenizer.json says
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
        tokenizer, told = _read(folder)
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
    _check_numbers(tokenizer, folder, title)
    return tokenizer, told if n_rows is None else (*told, *_within(tokenizer, n_rows, title))


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


def _read(folder: Path) -> tuple[Any, tuple[str, ...]]:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception:  # the class for this kind of model can't be made of these words, in whatever way that fails
        if not (folder / WHOLE).is_file():
            raise
        return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / WHOLE)), ()
    return _as_written(tokenizer, folder) if (folder / WHOLE).is_file() else (tokenizer, ())


def _as_written(tokenizer: Any, folder: Path) -> tuple[Any, tuple[str, ...]]:
    """Return the tokenizer, or the one that tokenizer.json describes if it cuts a text up differently, and a note.

    transformers goes by the name of a class, or by the kind of model, and makes a tokenizer of that kind from the words
    alone: what the file says of normalizing and splitting is lost. What tokenizer_config.json sets wins, as ever.
    """
    settings = _json(folder / "tokenizer_config.json")
    if any(settings.get(name) is not None for name in BERT_SETTINGS) or settings.get("add_prefix_space"):
        return tokenizer, ()
    written = tokenizers.Tokenizer.from_file(str(folder / WHOLE))
    written.no_truncation()
    written.no_padding()
    framed = any(name in settings for name in ("add_bos_token", "add_eos_token"))
    if framed:
        written.post_processor = tokenizer.backend_tokenizer.post_processor
    words = sorted(written.get_vocab())
    sample = " ".join([_SAMPLE, *words[:: len(words) // 50 + 1]])
    if tokenizer(sample)["input_ids"] == written.encode(sample).ids:
        return tokenizer, ()
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=written, **tokenizer.special_tokens_map)
    name = type(tokenizer).__name__
    return found, (f"Text is cut up as {WHOLE} says; the class {name} of transformers would do it differently.",)


def _check_numbers(tokenizer: Any, folder: Path, title: str) -> None:
    """Raise ValueError for an added word that has another number than the folder states: another vector's."""
    listed, settings = (_json(folder / name) for name in ("added_tokens.json", "tokenizer_config.json"))
    stated = {word: number for word, number in listed.items() if isinstance(number, int)}
    decoder = settings.get("added_tokens_decoder")
    for number, entry in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(entry, dict) and "content" in entry:
            stated[entry["content"]] = int(number)
    words = tokenizer.get_vocab()
    wrong = {word: number for word, number in stated.items() if words.get(word, number) != number}
    if wrong:
        word = min(wrong)
        raise ValueError(
            f"{title} has a tokenizer whose files disagree: the word {word[:40]!r} that was added has the number "
            f"{wrong[word]} in one and {words[word]} in another"
        )


def _json(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_bytes()) if file.is_file() else {}
    return found if isinstance(found, dict) else {}


def _check_files(tokenizer: Any, folder: Path, title: str) -> None:
    """Raise ValueError for files that aren't there: transformers makes a tokenizer that knows less, without a word."""
    if (folder / WHOLE).is_file():
        return
    known = type(tokenizer).vocab_files_names
    parts = [known[key] for key in ("vocab_file", "merges_file") if key in known] or ["tokenizer.model"]
    lost = [name for name in parts if not (folder / name).is_file()]
    if lost:
        raise ValueError(f"{title} has no {' and no '.join([WHOLE, *lost])}: it can't be said how it cuts up a text")
