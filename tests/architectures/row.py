"""What attnviz makes of one small model, beside what transformers makes of it."""

import traceback
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import transformers

import attnviz
from attnviz import Switches
from tests.tiny import tiny_tokenizer

TEXT = "w1 w2 w3 w4 w1 w2 w5 w7 w9 w1 w6 w3"
TARGET = "w4 w5 w6 w2"


def check(folder, class_name):
    row = {}
    try:
        engine = attnviz.load(str(folder))
    except ValueError as e:
        return {"outcome": "refused", "at": "load", "reason": str(e)}
    except BaseException as e:
        return crash("load", e)
    row["listens"] = engine.wiring.listens
    row["reason"] = engine.wiring.reason
    row["layers"] = {p: list(l) for p, l in engine.wiring.layers.items()}
    row["predicts"] = engine.info.predicts
    row["notes"] = list(engine.info.notes)
    row["limit"] = engine.info.limit
    encdec = len(engine.info.parts) > 1
    target = TARGET if encdec else None
    try:
        trace = engine.trace(TEXT, target=target)
    except ValueError as e:
        return row | {"outcome": "refused", "at": "trace", "reason": str(e)}
    except BaseException as e:
        return row | crash("trace", e)
    row["outcome"] = "recorded" if engine.wiring.listens else "own maps"
    model = getattr(transformers, class_name).from_pretrained(folder, attn_implementation="eager").eval()
    row |= compare(model, trace)
    row |= {"switches": switches(engine, trace, target)}
    row |= logits(model, engine, trace)
    row |= generation(model, engine)
    return row


def crash(where, e):
    frames = traceback.extract_tb(e.__traceback__)
    ours = [f"{f.filename.split('/')[-1]}:{f.lineno}" for f in frames if "attnviz" in f.filename]
    theirs = frames[-1]
    line = (str(e).splitlines() or [""])[0][:160]
    return {"outcome": "TRACEBACK", "at": where, "reason": f"{type(e).__name__}: {line}", "where": f"{ours[-1] if ours else ''} -> {theirs.filename.split('/')[-1]}:{theirs.lineno} {theirs.name}"}


def inputs_of(trace):
    inputs = {"input_ids": torch.tensor([[t.id for t in trace.tokens]])}
    if len(trace.parts) > 1:
        inputs["decoder_input_ids"] = torch.tensor([[t.id for t in trace.tokens_of("decoder")[0]]])
    return inputs


def compare(model, trace):
    try:
        with torch.no_grad():
            output = model(**inputs_of(trace), output_attentions=True)
    except Exception as e:
        return {"oracle": f"{type(e).__name__}: {str(e)[:100]}"}
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    if len(trace.parts) == 1:
        names = {trace.parts[0]: "attentions"}
    diff, sharp = 0.0, []
    for part, name in names.items():
        own = output.get(name)
        if not own or all(a is None for a in own):
            return {"oracle": f"no {name}"}
        own = [a[0].float().numpy() for a in own if a is not None]
        if len(own) != len(trace.layers_of(part)):
            return {"oracle": f"{len(own)} maps of {name} for layers {trace.layers_of(part)}"}
        for layer, theirs in zip(trace.layers_of(part), own):
            for head in range(trace.heads(layer, part=part)):
                w = trace.weights(layer, head, part=part)
                diff = max(diff, float(np.abs(w - theirs[head]).max()))
                sharp.append(w.max(axis=1).mean())
    return {"diff": diff, "sharp": float(np.mean(sharp))}


def switches(engine, trace, target):
    found = {}
    part = trace.parts[0]
    layer = trace.layers_of(part)[0]
    last = len(trace.tokens) - 1
    for name, s in {
        "causal on": Switches(causal=True),
        "causal off": Switches(causal=False),
        "scaled": Switches(scaled=False),
        "temperature": Switches(temperature=2.0),
        "ablate": Switches(ablate={(layer, 0)}),
        "forbid": Switches(forbid={(layer, 0, last, 1)}),
    }.items():
        try:
            t = engine.trace(TEXT, target=target, switches=s)
            found[name] = "acts"
            w0 = trace.weights(layer, 0, part=part)
            w = t.weights(layer, 0, part=part)
            if name == "causal off":
                on = engine.trace(TEXT, target=target, switches=Switches(causal=True)).weights(layer, 0, part=part)
                seen = np.tril(np.ones_like(w, bool))
                kept = np.where(seen, w, 0).astype(np.float64)
                div = kept.sum(1) + 1 - w.sum(1, dtype=np.float64)
                err = np.abs(on * div[:, None] - kept).max()
                if err > 1e-5 or (on[~seen] != 0).any():
                    found[name] = f"identity off by {err:.1e}"
                elif (w[~seen] == 0).all():
                    found[name] = "doesn't act"
            elif name == "scaled":
                if abs(trace.scale(layer, part=part) - 1) > 1e-9 and np.abs(w - w0).max() == 0:
                    found[name] = "doesn't act"
                kept = trace.weights(layer, 0, part=part, switches=s)
                if np.abs(kept - w).max() > 1e-5:
                    found[name] = f"pass and picture differ by {np.abs(kept - w).max():.1e}"
            elif name == "temperature":
                power = np.where(w0 > 0, w0.astype(np.float64), 0) ** 0.5
                expected = power / power.sum(1, keepdims=True)
                err = np.abs(expected - w).max()
                if err > 1e-5:
                    found[name] = f"not the root: {err:.1e}"
            elif name == "ablate":
                if np.abs(w - w0).max() > 1e-6:
                    found[name] = "changes its own map"
                differ = any(
                    np.abs(t.layer_weights(l, part=p) - trace.layer_weights(l, part=p)).max() > 0
                    for p in trace.parts for l in trace.layers_of(p)
                )
                if engine.info.predicts:
                    differ = differ or np.abs(t.next_logits - trace.next_logits).max() > 0 if hasattr(t, "next_logits") else differ
                if not differ:
                    found[name] = "changes nothing"
            elif name == "forbid":
                if w[last, 1] != 0:
                    found[name] = "still looks"
        except ValueError as e:
            found[name] = "refused: " + str(e)
        except BaseException as e:
            c = crash(name, e)
            found[name] = f"TRACEBACK {c['reason']} {c['where']}"
    return found


def logits(model, engine, trace):
    if not engine.info.predicts:
        return {}
    try:
        with torch.no_grad():
            own = model(**inputs_of(trace)).logits[0, -1].float().numpy()
        ours = trace.next_probabilities()
        p = torch.softmax(torch.tensor(own).double(), -1).numpy()
        trace.next_tokens(3)
        return {"logits": float(np.abs(p - ours).max())}
    except BaseException as e:
        return {"logits": f"{crash('', e)['reason']} {crash('', e)['where']}"}


def generation(model, engine):
    out, maps = {}, {}
    for cache in (True, False):
        try:
            steps = list(engine.generate(TEXT, 16, cache=cache))
            out[cache] = [s.token.id for s in steps]
            maps[cache] = steps[-1].trace
        except ValueError as e:
            out[cache] = "refused: " + str(e)
        except BaseException as e:
            c = crash("generate", e)
            out[cache] = f"TRACEBACK {c['reason']} {c['where']}"
    found = {"cached": out[True], "uncached": out[False]}
    if maps:
        ids = torch.tensor([[t.id for t in engine.trace(TEXT).tokens]])
        try:
            with torch.no_grad():
                made = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False, pad_token_id=1)
            found["generate"] = made[0, ids.shape[1]:].tolist()
            if found["generate"] != out[False]:
                with torch.no_grad():
                    made = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False, pad_token_id=1, use_cache=False)
                found["generate without cache"] = made[0, ids.shape[1]:].tolist()
        except BaseException as e:
            found["generate"] = f"{type(e).__name__}: {str(e)[:100]}"
    if len(maps) == 2:
        a, b = maps[True], maps[False]
        try:
            found["cache diff"] = max(float(np.abs(a.layer_weights(l) - b.layer_weights(l)).max()) for l in a.layers) if len(a.tokens) == len(b.tokens) else "lengths"
        except BaseException as e:
            found["cache diff"] = f"{type(e).__name__}: {e}"
    return found
