"""A random Llama of two layers with a byte tokenizer, saved as a Hugging Face folder."""

import json
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CALL_TAGS = ("<tool_call>", "</tool_call>")
VOCAB_SIZE = 320


def write_tokenizer(folder: Path, chat_template: str | None = None, chatml: bool = True) -> None:
    """Write a byte-level tokenizer; ids 0..255 are bytes in the order of their symbols."""
    folder.mkdir(parents=True, exist_ok=True)
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(symbols)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    if chatml:
        tokenizer.add_special_tokens([AddedToken(token, special=True) for token in CHATML])
        # As in Qwen's tokenizer, the call tags are tokens of their own but not "special".
        tokenizer.add_tokens([AddedToken(token, special=False) for token in CALL_TAGS])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    if chatml:
        config |= {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if chat_template is not None:
        (folder / "chat_template.jinja").write_text(chat_template)


def write_model(folder: Path, seed: int = 0) -> None:
    """Write a tied random Llama, with logits far enough from uniform to matter."""
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        initializer_range=0.15,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)


def load_model(folder: Path) -> LlamaForCausalLM:
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def weights_of(model: LlamaForCausalLM) -> list[tuple[str, torch.Tensor]]:
    """Return what a trainer would send: Hugging Face names, the tied head left out."""
    return [(name, parameter.detach()) for name, parameter in model.named_parameters()]


@torch.no_grad()
def logprobs_of(
    model: LlamaForCausalLM, prompt: tuple[int, ...], ids: tuple[int, ...], temperature: float = 1.0
) -> list[float]:
    """Return each continuation token's log-probability by one plain forward pass."""
    logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0].double() / temperature
    logprobs = logits - logits.logsumexp(dim=-1, keepdim=True)
    return [float(logprobs[len(prompt) - 1 + place, token]) for place, token in enumerate(ids)]


@torch.no_grad()
def perturb(model: LlamaForCausalLM, scale: float, seed: int = 1) -> None:
    """Move every weight a little, the embedding included."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.add_(noise * scale * parameter.std().clamp(min=0.1))
