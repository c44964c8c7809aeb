"""From a folder's safetensors to the weights of `scratch.Model`: names, shapes and what is refused. NumPy alone."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.models.load.weight_checks import all_finite, refuse_endless, unused_notes
from attnviz.models.load.weight_files import Checkpoint, open_checkpoint, read_array
from attnviz.models.scratch.activations import ACTIVATIONS, Float
from attnviz.models.scratch.decoder import Layer, Linear, Model, Norm

Reader: TypeAlias = Callable[[], NDArray[Any]]

PREFIXES = ("model.", "transformer.", "bert.")  # before the names of models saved with a head on top
# layout -> the classes of transformers, without and with an output that predicts the next token
CLASSES = {
    "llama": ("LlamaModel", "LlamaForCausalLM"),
    "gpt2": ("GPT2Model", "GPT2LMHeadModel"),
    "bert": ("BertModel",),
}


BASES = {"llama": "model", "gpt2": "transformer", "bert": "bert"}  # layout -> what comes before names of its body
LAYERS = {"llama": "layers", "gpt2": "h", "bert": "encoder"}  # layout -> what the layers lie in


def readers_of(source: Path | Checkpoint) -> dict[str, Reader]:
    """Return name -> function that reads that array, for all weights of a model, given its folder."""
    checkpoint = open_checkpoint(source) if isinstance(source, Path) else source
    return {name: partial(read_array, stored) for name, stored in checkpoint.tensors.items()}


def build(config: Any, readers: Mapping[str, Reader], title: str) -> Model:
    """Return a model's weights in float32, laid out for `scratch`.

    Args:
        config: the model's configuration, as transformers reads it from config.json.
        readers: name of an array -> function that returns it; called one by one, so that memory holds little twice.
        title: what to call the model when something is wrong.

    Raises:
        ValueError: another layout, a setting that isn't written out in `scratch`, or weights that don't fit.
    """
    return build_and_note(config, readers, title)[0]


def build_and_note(config: Any, readers: Mapping[str, Reader], title: str) -> tuple[Model, tuple[str, ...]]:
    """Return the same, and notes on weights in the files that it has no place for."""
    if config.model_type not in BUILDERS:
        raise ValueError(f"the from-scratch engine knows the layouts llama, bert and gpt2; this is {config.model_type}")
    weights = Weights(readers, title)
    model = BUILDERS[config.model_type](config, weights)
    modules = {LAYERS[config.model_type]} | ({"lm_head"} if model.head is not None else set())
    notes = weights.left(BASES[config.model_type], modules)
    if not model.layers:
        raise ValueError(f"{title} can't be run from scratch: its config.json says that it has no layers")
    return model, notes


class Weights:
    """The arrays of a model by their plain names, as float32."""

    def __init__(self, readers: Mapping[str, Reader], title: str) -> None:
        self._readers: dict[str, Reader] = {}
        self._names: dict[str, str] = {}  # plain name -> name in the files
        self._taken: set[str] = set()
        self._title = title
        for name, reader in readers.items():
            plain = plain_name(name)
            if plain in self._names:
                twins = f"{self._names[plain]} and as {name}"
                raise ValueError(f"{title} can't be loaded: its files hold {plain} twice, as {twins}")
            self._readers[plain], self._names[plain] = reader, name

    def take(self, name: str, *shape: int) -> Float:
        """Return an array, or raise ValueError: no such array, another shape, or quantised numbers."""
        if name not in self._readers:
            raise ValueError(f"{self._title} can't be run from scratch: its files have no weights called {name}")
        self._taken.add(name)
        array = self._readers[name]()
        if array.shape != shape or array.dtype.kind != "f":
            raise ValueError(
                f"{self._title} can't be run from scratch: expected {name} as real numbers of shape {shape}, "
                f"got {array.dtype} {array.shape}"
            )
        with np.errstate(over="ignore"):  # float64 that float32 has no room for becomes infinite, and is refused
            array = np.ascontiguousarray(array, np.float32)
        refuse_endless([(name, all_finite(array))], self._title)
        return array

    def left(self, base: str, modules: Collection[str]) -> tuple[str, ...]:
        """Return notes on the arrays that nobody took, or raise ValueError if they belong inside the model.

        Args:
            base: what stands before the names of the body in a model with a head.
            modules: dotted names of parts without an array of their own.
        """
        paths = [name.split(".")[:-1] for name in self._taken]
        inner = {".".join(path[:n]) for path in paths for n in range(1, len(path) + 1)}
        unused = {self._names[name]: self._readers[name]().shape for name in self._readers.keys() - self._taken}
        return unused_notes(unused, inner.union(modules), base, self._title)

    def linear(self, names: Mapping[str, int], n_in: int, *, bias: bool) -> Linear:
        """Return projections, name -> number of outputs, side by side: (n_in, all outputs). Files have them turned."""
        weights = [self.take(f"{name}.weight", n_out, n_in) for name, n_out in names.items()]
        biases = [self.take(f"{name}.bias", n_out) for name, n_out in names.items()] if bias else None
        return Linear(
            np.ascontiguousarray(np.concatenate(weights).T),  # contiguous: reading rows is what makes a matmul fast
            None if biases is None else np.concatenate(biases),
        )

    def conv1d(self, name: str, n_in: int, n_out: int) -> Linear:
        """Return a projection that is stored as (n_in, n_out), as GPT-2's are."""
        return Linear(self.take(f"{name}.weight", n_in, n_out), self.take(f"{name}.bias", n_out))

    def rms_norm(self, name: str, width: int, epsilon: float) -> Norm:
        """Return a norm with a gain alone."""
        return Norm(self.take(f"{name}.weight", width), None, epsilon)

    def layer_norm(self, name: str, width: int, epsilon: float) -> Norm:
        """Return a norm with gain and offset."""
        return Norm(self.take(f"{name}.weight", width), self.take(f"{name}.bias", width), epsilon)

    def head(self, config: Any, words: Float) -> Float | None:
        """Return the (vocabulary, d_model) output head: none, the words again, or its own.

        As transformers does: a head in the files counts, whatever the configuration says of tying. Where the
        configuration names no class, there is a head if the files hold one or it is tied.
        """
        named, own = config.architectures, "lm_head.weight" in self._readers
        if named and CLASSES[config.model_type][1] not in named:
            return None
        if own or (named and not config.tie_word_embeddings):
            head = self.take("lm_head.weight", *words.shape)
            return words if config.tie_word_embeddings and np.array_equal(head, words) else head
        return words if config.tie_word_embeddings else None


def plain_name(name: str) -> str:
    """Return a weight's name without the prefix of models with a head, and by its newer spelling.

    >>> plain_name("model.layers.0.mlp.up_proj.weight"), plain_name("bert.embeddings.LayerNorm.gamma")
    ('layers.0.mlp.up_proj.weight', 'embeddings.LayerNorm.weight')
    """
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        name = name.removesuffix(old) + new if name.endswith(old) else name
    return name


def _llama(config: Any, weights: Weights) -> Model:
    rope = config.rope_parameters or {}
    _expect("rope_type", rope.get("rope_type", "default"), "default")
    _expect("hidden_act", config.hidden_act, "silu")
    width, d_ff, d_head, epsilon = config.hidden_size, config.intermediate_size, config.head_dim, config.rms_norm_eps
    n_q, n_kv = config.num_attention_heads * d_head, config.num_key_value_heads * d_head
    words = weights.take("embed_tokens.weight", config.vocab_size, width)

    def layer(path: str) -> Layer:
        qkv = {f"{path}.self_attn.{letter}_proj": n for letter, n in (("q", n_q), ("k", n_kv), ("v", n_kv))}
        up = {f"{path}.mlp.gate_proj": d_ff, f"{path}.mlp.up_proj": d_ff}
        return Layer(
            norm_1=weights.rms_norm(f"{path}.input_layernorm", width, epsilon),
            qkv=weights.linear(qkv, width, bias=config.attention_bias),
            scale=d_head**-0.5,
            out=weights.linear({f"{path}.self_attn.o_proj": width}, n_q, bias=config.attention_bias),
            norm_2=weights.rms_norm(f"{path}.post_attention_layernorm", width, epsilon),
            up=weights.linear(up, width, bias=config.mlp_bias),
            down=weights.linear({f"{path}.mlp.down_proj": width}, d_ff, bias=config.mlp_bias),
        )

    return Model(
        layout="llama",
        n_heads=config.num_attention_heads,
        n_kv_heads=config.num_key_value_heads,
        words=words,
        layers=tuple(layer(f"layers.{number}") for number in range(config.num_hidden_layers)),
        norm=weights.rms_norm("norm", width, epsilon),
        theta=float(rope["rope_theta"]),
        head=weights.head(config, words),
    )


def _bert(config: Any, weights: Weights) -> Model:
    _expect("is_decoder", config.is_decoder, False)
    _expect("position_embedding_type", getattr(config, "position_embedding_type", "absolute"), "absolute")
    _expect("hidden_act", config.hidden_act, *ACTIVATIONS)
    width, d_ff, epsilon = config.hidden_size, config.intermediate_size, config.layer_norm_eps

    def layer(path: str) -> Layer:
        qkv = {f"{path}.attention.self.{name}": width for name in ("query", "key", "value")}
        return Layer(
            norm_1=weights.layer_norm(f"{path}.attention.output.LayerNorm", width, epsilon),
            qkv=weights.linear(qkv, width, bias=True),
            scale=(width // config.num_attention_heads) ** -0.5,
            out=weights.linear({f"{path}.attention.output.dense": width}, width, bias=True),
            norm_2=weights.layer_norm(f"{path}.output.LayerNorm", width, epsilon),
            up=weights.linear({f"{path}.intermediate.dense": d_ff}, width, bias=True),
            down=weights.linear({f"{path}.output.dense": width}, d_ff, bias=True),
        )

    return Model(
        layout="bert",
        n_heads=config.num_attention_heads,
        n_kv_heads=config.num_attention_heads,
        words=weights.take("embeddings.word_embeddings.weight", config.vocab_size, width),
        layers=tuple(layer(f"encoder.layer.{number}") for number in range(config.num_hidden_layers)),
        norm=weights.layer_norm("embeddings.LayerNorm", width, epsilon),
        positions=weights.take("embeddings.position_embeddings.weight", config.max_position_embeddings, width),
        token_type=weights.take("embeddings.token_type_embeddings.weight", config.type_vocab_size, width)[0],
        activation=config.hidden_act,
    )


def _gpt2(config: Any, weights: Weights) -> Model:
    _expect("add_cross_attention", config.add_cross_attention, False)
    _expect("activation_function", config.activation_function, *ACTIVATIONS)
    width, d_ff, epsilon = config.n_embd, config.n_inner or 4 * config.n_embd, config.layer_norm_epsilon
    words = weights.take("wte.weight", config.vocab_size, width)

    def layer(number: int) -> Layer:
        path = f"h.{number}"
        scale = (width // config.n_head) ** -0.5 if config.scale_attn_weights else 1.0
        return Layer(
            norm_1=weights.layer_norm(f"{path}.ln_1", width, epsilon),
            qkv=weights.conv1d(f"{path}.attn.c_attn", width, 3 * width),
            scale=scale / (number + 1) if config.scale_attn_by_inverse_layer_idx else scale,
            out=weights.conv1d(f"{path}.attn.c_proj", width, width),
            norm_2=weights.layer_norm(f"{path}.ln_2", width, epsilon),
            up=weights.conv1d(f"{path}.mlp.c_fc", width, d_ff),
            down=weights.conv1d(f"{path}.mlp.c_proj", d_ff, width),
        )

    return Model(
        layout="gpt2",
        n_heads=config.n_head,
        n_kv_heads=config.n_head,
        words=words,
        layers=tuple(layer(number) for number in range(config.n_layer)),
        norm=weights.layer_norm("ln_f", width, epsilon),
        positions=weights.take("wpe.weight", config.n_positions, width),
        activation=config.activation_function,
        head=weights.head(config, words),
    )


BUILDERS: dict[str, Callable[[Any, Weights], Model]] = {"llama": _llama, "bert": _bert, "gpt2": _gpt2}


def _expect(setting: str, found: Any, *known: Any) -> None:
    """Raise ValueError for a setting in config.json that `scratch` doesn't write out."""
    if found not in known:
        listed = ", ".join(map(str, known))
        raise ValueError(f"the from-scratch engine knows {setting} {listed}; this model has {found}")
