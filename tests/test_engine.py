"""What the engine's samplers have in common."""

from redqueen.config import parse_config
from redqueen.engine import load_adapters
from redqueen.policy.torch_sampler import TorchSampler


def test_a_sampler_that_judges_draws_from_the_nucleus_that_the_solver_draws_from() -> None:
    nucleus = {"top_p": 0.9, "temperature": 0.7}
    adapters = load_adapters(parse_config({"propose": nucleus, "solve": {**nucleus, "max_rows": 64}}, "test"))
    judge = adapters.sampler(0.7)
    assert isinstance(judge, TorchSampler) and isinstance(adapters.solver, TorchSampler)
    assert judge.top_p == adapters.solver.top_p == 0.9
