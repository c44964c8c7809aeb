"""PyTorch's attention, as the page compares with it, against a plain loop."""

import numpy as np
import pytest

from attnviz.core.attention.textbook import scaled_dot_product_attention
from attnviz.models.measure.torch_attention import torch_attention


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_output_and_weights_are_those_of_a_plain_loop(dtype):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    allowed = rng.random((5, 7)) < 0.6
    allowed[:, 0] = True
    output, weights = torch_attention(*(x.astype(dtype) for x in (q, k, v)), allowed=allowed, scale=0.3)
    assert output.dtype == weights.dtype == dtype
    for row in range(5):
        powers = [np.exp(0.3 * q[row] @ k[key]) if allowed[row, key] else 0.0 for key in range(7)]
        shares = np.array(powers) / sum(powers)
        np.testing.assert_allclose(weights[row], shares, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(output[row], shares @ v, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-13)


def test_read_only_arrays_are_fine_and_ours_agrees(smollm2):
    trace = smollm2.trace("Mary bought a car")
    q, k, v = trace.qkv(13, 8)
    output, weights = torch_attention(q, k, v, allowed=np.tri(4, dtype=bool), scale=trace.scale(13))
    ours, our_weights = scaled_dot_product_attention(q, k, v, causal=True, scale=trace.scale(13))
    np.testing.assert_allclose(our_weights, weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours, output, rtol=0, atol=1e-5)
