"""Drawing tokens from logits: temperature only, one uniform number of the request's own a token.

Inverse-CDF sampling in float64: a rounding difference in the logits moves the outcome only where
the draw falls on a boundary, so a request's result hardly depends on its batch.
"""

from collections.abc import Sequence

import torch


def sample_tokens(
    logits: torch.Tensor, temperatures: Sequence[float], generators: Sequence[torch.Generator]
) -> tuple[list[int], list[float]]:
    """Sample one token a row.

    Args:
        logits: float32 `[row, vocab]`.
        temperatures: one a row; 0 takes the most likely token.
        generators: one a row; each advances by one draw, greedy rows too.

    Returns:
        Token ids, and their log-probabilities at the row's temperature (at 1 for greedy rows).
    """
    scale = torch.tensor([t if t > 0 else 1.0 for t in temperatures], dtype=torch.float32)
    logprobs = torch.log_softmax(logits / scale[:, None], dim=-1)
    cumulative = logprobs.double().exp().cumsum(dim=-1)
    uniforms = torch.stack(
        [torch.rand(1, generator=generator, dtype=torch.float64) for generator in generators]
    )
    drawn = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)
    drawn = drawn.clamp(max=logits.shape[1] - 1)
    greedy = torch.tensor([t == 0 for t in temperatures])
    ids = torch.where(greedy, logits.argmax(dim=-1), drawn[:, 0])
    return ids.tolist(), logprobs.gather(1, ids[:, None])[:, 0].tolist()
