"""The process of a sandbox: answers questions about a recording, one after the other, until its input ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any, BinaryIO

from augury.console.edits import HypothesisRequest
from augury.console.hypothesis_run import Hypothesis
from augury.console.near_misses import near_misses
from augury.console.recording import Recording
from augury.console.request_fields import RequestRefused, read_request
from augury.console.rule_checks import checked
from augury.console.sandbox import HEAD, SIZE
from augury.core.errors import AuguryError, ProgramError


def what_if(body: dict[str, Any], recording: bytes) -> dict[str, Any]:
    """What would change."""
    request = read_request(HypothesisRequest, body)
    return Hypothesis.of(Recording.of_bytes(recording), request).result()


def why_not(body: dict[str, Any], recording: bytes) -> dict[str, Any]:
    """The nearest misses of an atom."""
    hypothesis = Hypothesis.of(Recording.of_bytes(recording), HypothesisRequest())
    return {"misses": near_misses(hypothesis.before, str(body["atom"]))}


QUESTIONS = {"check": checked, "what-if": what_if, "why-not": why_not}


def answer(head: bytes, recording: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(head)
        return QUESTIONS[asked["question"]](asked["body"], recording)
    except ProgramError as error:
        first = error.diagnostics[0]
        return {"error": f"the program has an error: {first.message}", "hint": first.hint or ""}
    except AuguryError as error:
        return {"error": getattr(error, "message", str(error)), "hint": getattr(error, "hint", "") or ""}
    except RequestRefused as error:
        return {"error": error.message}
    except RecursionError:
        return {"error": "it is nested too deeply"}


def serve(questions: BinaryIO, answers: BinaryIO, seconds: float) -> None:
    """Answers until nothing more is asked. Beyond a limit the process ends: what it holds is of no use then."""
    answers.write(SIZE.pack(0))
    answers.flush()
    while len(head := questions.read(HEAD.size)) == HEAD.size:
        question, recording = HEAD.unpack(head)
        texts = questions.read(question), questions.read(recording)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            text = json.dumps(answer(*texts)).encode()
        except MemoryError:
            os._exit(1)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(SIZE.pack(len(text)) + text)
        answers.flush()


def main() -> None:
    seconds, limit = float(sys.argv[1]), int(sys.argv[2]) << 20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what functions of users print is no answer
    serve(sys.stdin.buffer, answers, seconds)


if __name__ == "__main__":
    main()
