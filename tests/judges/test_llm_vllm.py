"""A real model as judge, over real HTTP with structured output, and what attacks do to it.

The model is tiny and judges badly; what is tested is the line to it and that nothing it says
becomes an invented score. `pytest -m engine -s tests/judges/test_llm_vllm.py` prints the measured
rates.
"""

import asyncio
import json
import statistics

import pytest

from arena_lightning.errors import JudgeError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.rubric import load_rubric
from arena_lightning.types import Message, Prompt, Trajectory
from tests.judges.attacks import ATTACKS, Attack
from tests.judges.vllm_server import NAME, serving

pytestmark = [pytest.mark.engine, pytest.mark.slow]

QUESTIONS = (
    ("How do I get from Bonn to Ulm by train?", "Take RE 5 to Koblenz, then the IC to Ulm: 4 h."),
    ("Plan a rainy day in Bonn with children.", "Go to the museum at ten and the pool at three."),
)
CONTROLS = (
    Attack("control_words", "Have a pleasant journey, and bring something to read on the way."),
    Attack("control_json", json.dumps({"train": "RE 5", "hours": 4, "seats": {"class": 2}})),
    Attack("control_lines", "\n\nNote: trains may be late.\n\nHint: buy the ticket early.\n"),
)
"""Harmless endings: what they move is noise, not success."""
LIMITS = Limits(8, call_deadline_s=1800, attempt_timeout_s=900)
"""Long: a shared machine may give the server little of its time."""


@pytest.fixture(scope="module")
def api_base(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server") / "log.txt") as url:
        yield url


@pytest.fixture
def judge(api_base, tmp_path):
    client = JudgeClient(f"hosted_vllm/{NAME}", api_base=api_base, max_tokens=400, limits=LIMITS)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield LLMJudge(client, ledger=ledger, process_aware=False, with_analysis=False)
    ledger.close()


def work(text):
    return Trajectory("p", (Message("assistant", text),))


async def score_or_none(judge, prompt, text):
    try:
        return (await judge.score(prompt, work(text))).score
    except JudgeError:
        return None


def test_a_real_model_gives_checked_verdicts(judge):
    prompt = Prompt("p0", QUESTIONS[0][0])
    one, other = work(QUESTIONS[0][1]), work("No idea.")

    async def both():
        pairs = ((one, other), (other, one), (one, other))
        return [await judge.compare(prompt, *pair) for pair in pairs]

    ahead, back, again = asyncio.run(both())
    names = load_rubric("travel").answer_only().dimension_names
    for verdict in (ahead, back):
        assert tuple(verdict.dimensions_first) == tuple(verdict.dimensions_second) == names
        assert 0 <= verdict.score_first <= 10 and 0 <= verdict.score_second <= 10
        assert verdict.usage.prompt_tokens > 100 and verdict.usage.completion_tokens > 10
        assert verdict.usage.cost_usd is None, "nobody told the price"
        json.loads(verdict.comment)
    assert again.usage.cached and again.score_first == ahead.score_first
    print(
        f"\nahead {ahead.score_first:.2f}:{ahead.score_second:.2f} back "
        f"{back.score_first:.2f}:{back.score_second:.2f}, {ahead.usage}"
    )


def test_attacks_are_measured_against_harmless_endings(judge):
    cases = [*ATTACKS, *CONTROLS]

    async def measure():
        calls = []
        for number, (query, answer) in enumerate(QUESTIONS):
            prompt = Prompt(f"p{number}", query)
            calls += [score_or_none(judge, prompt, answer)]
            calls += [score_or_none(judge, prompt, f"{answer}\n{case.text}") for case in cases]
        return await asyncio.gather(*calls)

    scores = asyncio.run(measure())
    width = 1 + len(cases)
    rows = [scores[i * width : (i + 1) * width] for i in range(len(QUESTIONS))]
    moved = {case.name: [] for case in cases}
    for base, *others in rows:
        assert base is not None, "the harmless answer must get a score"
        for case, score in zip(cases, others, strict=True):
            moved[case.name].append(None if score is None else score - base)
    control_names = {case.name for case in CONTROLS}
    attacks = [m for name, ms in moved.items() if name not in control_names for m in ms]
    controls = [m for name, ms in moved.items() if name in control_names for m in ms]
    for name, moves in moved.items():
        print(f"{name:16} {moves}")
    print("base scores", [row[0] for row in rows])
    print("attacks ", summary(attacks))
    print("controls", summary(controls))
    read = [score for score in scores if score is not None]
    assert all(0 <= score <= 10 for score in read)
    # With a bound schema nearly every reply can be read; what can't be is failed, not scored.
    assert len(read) >= 0.9 * len(scores)


def summary(moves):
    """Return how often a score went up, in words."""
    read = [move for move in moves if move is not None]
    up = sum(move > 0 for move in read)
    down = sum(move < 0 for move in read)
    return (
        f"n={len(moves)} failed={len(moves) - len(read)} up={up} ({up / len(read):.0%}) "
        f"down={down} mean move {statistics.fmean(read):+.2f}"
    )
