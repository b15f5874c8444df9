"""Writing proposals: how many, from which prompts, with which references, and what is made of the texts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from scripted import Scripted, Teacher, config_of, garbage
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from redqueen.adapters.base_shape import embedded_folder
from redqueen.config import ProposeConfig
from redqueen.domains.code.kinds import IDENTITY
from redqueen.domains.code.prompts_compact import NEW
from redqueen.domains.frames import IN, REF
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.propose.buffer import TaskBuffer
from redqueen.propose.proposing import Proposal, propose
from redqueen.records import Completion, Individual, Rating, Task
from redqueen.streams import Streams

TEACHERS = [Individual(f"T{slot + 1}", "teacher", slot, Rating(25, 8)) for slot in range(2)]
SEEDED = TaskBuffer(8, (IDENTITY,))
OPPONENTS = {"T1": ("S1",), "T2": ("S1", "S2")}


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


def task(name: str, code: str, teacher: str = "T1", input_: str = "1") -> Task:
    return Task(name, teacher, "S1", "code_o", code, (input_,), ("2",))


def write(
    sampler: Scripted, buffer: TaskBuffer, max_prompt_tokens: int = 512, step: int = 3, **changes: object
) -> list[Proposal]:
    config = config_of(propose=changes).propose
    seams = (sampler, PromptFormat(FRAMES["compact"]), sampler.tokenizer)
    return propose(TEACHERS, OPPONENTS, buffer, config, *seams, Streams(0, step), max_prompt_tokens)


def prompts_of(sampler: Scripted) -> list[str]:
    return [str(sampler.tokenizer.decode(list(request.prompt))) for request in sampler.requests]


def longest(requests: Sequence[object]) -> int:
    return max(len(request.prompt) for request in requests)  # type: ignore[attr-defined]


def test_every_teacher_writes_as_many_of_each_kind_as_asked_a_few_from_each_prompt(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    sampler = Scripted(tokenizer, Teacher())
    proposals = write(sampler, SEEDED, num_proposals={"code_o": 5, "code_i": 2, "code_f": 1}, num_per_prompt=2)
    assert [(r.slot, r.num_samples) for r in sampler.requests] == [
        (slot, count) for slot in (0, 1) for count in (2, 2, 1, 2, 1)
    ]
    kinds = ["code_o"] * 5 + ["code_i"] * 2 + ["code_f"]
    assert [(p.candidate.teacher, p.candidate.kind) for p in proposals] == [
        (teacher, kind) for teacher in ("T1", "T2") for kind in kinds
    ]
    assert [p.candidate.student for p in proposals] == ["S1"] * 8 + ["S1,S2"] * 8


def test_ids_and_seeds_are_never_used_twice_within_a_step_or_across_steps(tokenizer: PreTrainedTokenizerBase) -> None:
    sampler = Scripted(tokenizer, Teacher())
    ids = [p.candidate.id for step in (1, 2) for p in write(sampler, SEEDED, step=step)]
    assert len(set(ids)) == len(ids)
    assert len({request.rng_seed for request in sampler.requests}) == len(sampler.requests)


def test_references_are_shown_for_programs_and_a_given_program_for_inputs(tokenizer: PreTrainedTokenizerBase) -> None:
    buffer = SEEDED.add([task(str(k), f"def f(x):\n    return x - {k}\n", input_=str(k)) for k in range(3)])
    sampler = Scripted(tokenizer, Teacher())
    write(sampler, buffer, num_proposals={"code_o": 1, "code_i": 1, "code_f": 1}, num_references=2)
    for prompt in prompts_of(sampler):
        if prompt.endswith(NEW["code_f"]):
            assert prompt.count("def f(x)") == 1 and REF not in prompt
        else:
            assert prompt.count(REF) == prompt.count(IN) == 2
    assert [p[-len(NEW["code_o"]) :] for p in prompts_of(sampler)] == [NEW["code_o"], NEW["code_i"], NEW["code_f"]] * 2


def test_an_induction_proposal_is_about_the_given_program(tokenizer: PreTrainedTokenizerBase) -> None:
    sampler = Scripted(tokenizer, lambda *_: f"adds{IN}1{IN}2")
    buffer = SEEDED.add([task("a", "def f(x):\n    return x - 1\n")])
    proposals = write(sampler, buffer, num_proposals={"code_o": 0, "code_i": 0, "code_f": 8}, num_per_prompt=1)
    for proposal, prompt in zip(proposals, prompts_of(sampler), strict=True):
        assert proposal.candidate.code.strip() in prompt
        assert (proposal.candidate.inputs, proposal.candidate.message) == (("1", "2"), "adds")
    assert len({p.candidate.code for p in proposals}) == 2


def test_what_was_sampled_is_kept_for_the_learner_beside_what_was_read(tokenizer: PreTrainedTokenizerBase) -> None:
    sampler = Scripted(tokenizer, Teacher())
    proposals = write(sampler, SEEDED)
    assert [p.prompt for p in proposals[:2]] == [sampler.requests[0].prompt] * 2
    for proposal in proposals:
        assert proposal.slot == {"T1": 0, "T2": 1}[proposal.candidate.teacher]
        assert proposal.completion.tokens[-1] == tokenizer.eos_token_id
        assert proposal.candidate.text == f"{proposal.candidate.code.strip()}{IN}{proposal.candidate.inputs[0]}"


def test_what_cannot_be_read_is_a_candidate_with_its_reason(tokenizer: PreTrainedTokenizerBase) -> None:
    assert {p.candidate.error for p in write(Scripted(tokenizer, garbage), SEEDED)} == {"a mark where text should be"}
    cut = write(Scripted(tokenizer, lambda *_: None), SEEDED)
    assert {(p.candidate.error, p.candidate.text) for p in cut} == {("cut off at the token limit", "cut")}


def test_references_that_do_not_fit_are_left_out(tokenizer: PreTrainedTokenizerBase) -> None:
    long = [task(str(k), f"def f(x):\n    return {'x + ' * 40}{k}\n", input_=str(k)) for k in range(7)]
    sampler = Scripted(tokenizer, Teacher())
    write(sampler, SEEDED.add(long), max_prompt_tokens=250, num_references=6, num_proposals={"code_f": 0})
    assert 100 < longest(sampler.requests) <= 250
    write(sampler, SEEDED.add(long), max_prompt_tokens=20, num_references=6, num_proposals={"code_f": 0})
    assert longest(sampler.requests[-4:]) <= 20


def test_a_given_program_that_does_not_fit_gives_way_to_the_identity_program(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    long = [task(str(k), f"def f(x):\n    return {'x + ' * 40}{k}\n", input_=str(k)) for k in range(20)]
    sampler = Scripted(tokenizer, lambda *_: f"same{IN}1")
    wanted = {"num_proposals": {"code_o": 0, "code_i": 0, "code_f": 4}, "num_per_prompt": 1}
    proposals = write(sampler, SEEDED.add(long), max_prompt_tokens=50, **wanted)
    assert longest(sampler.requests) <= 50
    assert {p.candidate.code for p in proposals} == {"def f(x):\n    return x\n"}


def test_no_kind_needs_to_be_asked_for_but_one(tokenizer: PreTrainedTokenizerBase) -> None:
    proposals = write(Scripted(tokenizer, Teacher()), SEEDED, num_proposals={"code_o": 0, "code_i": 0, "code_f": 1})
    assert [p.candidate.kind for p in proposals] == ["code_f", "code_f"]
    assert isinstance(config_of().propose, ProposeConfig)


def inputs(*values: object) -> str:
    return "".join(f"{IN}{value}" for value in values)


def induction(tokenizer: PreTrainedTokenizerBase, text: str | None, **changes: object) -> Proposal:
    sampler = Scripted(tokenizer, lambda prompt, slot, sample: text)
    numbers = {"num_proposals": {"code_o": 0, "code_i": 0, "code_f": 1}, "num_per_prompt": 1, **changes}
    return write(sampler, SEEDED, **numbers)[0]


def test_what_follows_the_last_input_is_neither_read_nor_learned_from(tokenizer: PreTrainedTokenizerBase) -> None:
    ten = "add" + inputs(*range(10))
    endless = ten + inputs(*range(10, 40))
    plain = induction(tokenizer, endless)
    assert len(plain.candidate.inputs) == 40
    cut = induction(tokenizer, endless, complete_at_last_input=True)
    assert (cut.candidate.inputs, cut.candidate.message, cut.candidate.error) == (
        tuple(map(str, range(10))), "add", "",
    )  # fmt: skip
    written = str(tokenizer.decode(list(cut.completion.tokens)))
    assert written == ten + IN and len(cut.completion.logprobs) == len(cut.completion.tokens)
    assert cut.completion.finished and cut.completion.tokens == plain.completion.tokens[: len(cut.completion.tokens)]


def test_a_proposal_that_is_whole_is_not_cut_off_by_the_token_limit(tokenizer: PreTrainedTokenizerBase) -> None:
    class Endless(Scripted):
        def _write(self, request: object, sample: int) -> Completion:
            return replace(super()._write(request, sample), finished=False)

    sampler = Endless(tokenizer, lambda prompt, slot, sample: "add" + inputs(*range(30)))
    numbers = {"num_proposals": {"code_o": 0, "code_i": 0, "code_f": 1}, "num_per_prompt": 1}
    assert write(sampler, SEEDED, **numbers)[0].candidate.error == "cut off at the token limit"
    assert write(sampler, SEEDED, **numbers, complete_at_last_input=True)[0].candidate.error == ""


@pytest.mark.parametrize(
    "text",
    [
        "add" + inputs(*[1] * 30),  # one input again and again
        "add" + inputs(*range(10)),  # the last one is not closed: it may go on
        "add" + inputs("open(", *range(20)),  # what comes first is no input
        "add",
    ],
)
def test_a_proposal_that_is_never_whole_is_left_as_it_is(tokenizer: PreTrainedTokenizerBase, text: str) -> None:
    one, other = (induction(tokenizer, text, complete_at_last_input=switch) for switch in (False, True))
    assert one == other


def test_sampling_itself_stops_where_no_more_inputs_count(tokenizer: PreTrainedTokenizerBase) -> None:
    (mark,) = tokenizer(IN, add_special_tokens=False)["input_ids"]
    for switch, expected in ((True, {(mark, 11), (-1, 0)}), (False, {(-1, 0)})):
        sampler = Scripted(tokenizer, Teacher())
        write(sampler, SEEDED, num_proposals={"code_o": 1, "code_i": 1, "code_f": 1}, complete_at_last_input=switch)
        assert {(r.stop_token, r.stop_count) for r in sampler.requests} == expected
