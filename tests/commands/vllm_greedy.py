"""Prints vLLM's greedy continuation: arguments are a base, an adapter or "", tokens as JSON and how many to add."""

import json
import os
import sys

os.environ |= {"VLLM_HOST_IP": "127.0.0.1", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}


def main(model: str, adapter: str, prompt: str, num_tokens: str) -> None:
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    lora = {"enable_lora": True, "max_lora_rank": 8} if adapter else {}
    engine = LLM(model, dtype="float32", enforce_eager=True, max_model_len=512, **lora)
    sampling = SamplingParams(temperature=0.0, min_tokens=int(num_tokens), max_tokens=int(num_tokens))
    request = LoRARequest("member", 1, adapter) if adapter else None
    answers = engine.generate([{"prompt_token_ids": json.loads(prompt)}], sampling, lora_request=request)
    print("\ntokens:", json.dumps(list(answers[0].outputs[0].token_ids)))  # among what vLLM prints


if __name__ == "__main__":
    main(*sys.argv[1:])
