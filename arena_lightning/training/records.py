"""The source of truth of a run: one JSONL file a step with trajectories, matches and standings.

A file is written whole and renamed, so a killed run leaves no half-written step; a resumed run
writes the same name again. `read_step` is what the studies' bank recorder reads.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from arena_lightning.arena import ArenaResult
from arena_lightning.errors import RecordError
from arena_lightning.judges.panel import PanelVerdict
from arena_lightning.types import (
    Group,
    Message,
    Prompt,
    Segment,
    ToolCall,
    Trajectory,
    Verdict,
)


def write_jsonl(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write records atomically, one JSON object a line.

    Raises:
        RecordError: the folder is not writable or full.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        os.replace(temporary, path)
    except OSError as error:
        raise RecordError(
            f"a step's record must be writable, got {error} ({path}). "
            "Free space or choose another run folder."
        ) from error


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a file's records.

    Raises:
        RecordError: a line is not a JSON object; names file and line.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise RecordError(
                    f"every line must be a JSON object, got {error.msg} ({path}, line {number}). "
                    "Delete the file to have the step done again."
                ) from error
            yield record


def prompt_to_record(prompt: Prompt) -> dict[str, Any]:
    return {
        "prompt_id": prompt.prompt_id,
        "query": prompt.query,
        "subtask": prompt.subtask,
        "language": prompt.language,
        "needs": dict(prompt.needs),
    }


def trajectory_to_record(trajectory: Trajectory) -> dict[str, Any]:
    """Return plain types: messages as text, segments as ids with their log-probabilities."""
    return {
        "prompt_id": trajectory.prompt_id,
        "index": trajectory.index,
        "finish": trajectory.finish,
        "messages": [asdict(message) for message in trajectory.messages],
        "segments": [asdict(segment) for segment in trajectory.segments],
    }


def trajectory_from_record(record: dict[str, Any]) -> Trajectory:
    """Return the trajectory that `trajectory_to_record` wrote."""
    messages = tuple(
        Message(
            **{
                **message,
                "tool_calls": tuple(ToolCall(**call) for call in message["tool_calls"]),
            }
        )
        for message in record["messages"]
    )
    segments = tuple(
        Segment(
            segment["emitter"],
            tuple(segment["ids"]),
            tuple(segment["logprobs"]),
            segment["policy_version"],
        )
        for segment in record["segments"]
    )
    return Trajectory(record["prompt_id"], messages, segments, record["finish"], record["index"])


def write_step(
    run_dir: Path,
    step: int,
    groups: Sequence[Group],
    results: Sequence[ArenaResult],
    advantages: Sequence[np.ndarray],
) -> None:
    """Write a step's judged groups; step 0 is the file of step 1."""
    rows = zip(groups, results, advantages, strict=True)
    records = [group_record(step, *row) for row in rows]
    write_jsonl(run_dir / "steps" / f"step-{step + 1:06d}.jsonl", records)


def _members_record(verdict: Verdict) -> dict[str, Any]:
    """Return what each judge of a panel said, {} for a single judge."""
    if not isinstance(verdict, PanelVerdict):
        return {}
    scores = {name: [v.score_first, v.score_second] for name, v in verdict.members.items()}
    return {"members": scores, "member_failures": dict(verdict.failures)}


def group_record(
    step: int, group: Group, result: ArenaResult, advantages: np.ndarray
) -> dict[str, Any]:
    """Return one judged group: prompt, trajectories, every judge call, matches, standings."""
    standings = result.standings
    return {
        "step": step + 1,
        "prompt": prompt_to_record(group.prompt),
        "trajectories": [trajectory_to_record(t) for t in group.trajectories],
        "calls": [
            {
                "first": call.first,
                "second": call.second,
                "error": call.error,
                "verdict": None
                if call.verdict is None
                else {
                    "score_first": call.verdict.score_first,
                    "score_second": call.verdict.score_second,
                    "dimensions_first": dict(call.verdict.dimensions_first),
                    "dimensions_second": dict(call.verdict.dimensions_second),
                    "judge": call.verdict.judge,
                    **_members_record(call.verdict),
                },
            }
            for call in result.calls
        ],
        "matches": [list(match) for match in standings.matches],
        "ranks": standings.ranks.tolist(),
        "points": standings.points.tolist(),
        "scores": [None if np.isnan(s) else float(s) for s in standings.scores],
        "advantages": advantages.tolist(),
        "dropped": result.dropped,
    }
