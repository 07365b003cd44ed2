"""Judge one answer: is it begun, finished, right, and if not, which sentence teaches."""

import builtins
import sys
import zlib
from dataclasses import dataclass, field

from helpers.exercises import _attempt, _guard
from helpers.exercises._model import Wrong

_LONGEST = 300


@dataclass(frozen=True)
class Verdict:
    """Hold what a test said about an answer.

    Attributes
    ----------
    status : str
        not attempted, unfinished, wrong, raised, stopped or passed.
    sentence : str
        What the reader is told.
    message : str
        Identifier of the sentence for the progress record; never its text.
    printed : str
        The first characters that the answer printed.
    """

    status: str
    sentence: str = ""
    message: str = ""
    printed: str = field(default="", compare=False)


def judge(id, exercise, answer, *, before=None):
    """Return the Verdict on an answer; ``before()`` runs once it is clear that the test will.

    Raises nothing but KeyboardInterrupt: whatever the answer does becomes a Verdict.
    """
    state, sentence = _attempt.look_at(answer, exercise)
    if state == "wrong":
        return Verdict(state, sentence, "keys")
    if state != "attempted":
        return Verdict(state, sentence, state if sentence else "")
    if before is not None:
        before()
    namespaces = [sys.modules["__main__"].__dict__, *_attempt.globals_of(answer)]
    with (
        _guard.kept_state(zlib.crc32(str(id).encode())),
        _guard.without_exit(namespaces),
        _guard.captured() as printed,
    ):
        verdict = _run(exercise, answer)
    return Verdict(verdict.status, verdict.sentence, verdict.message, printed.kept())


def _run(exercise, answer):
    try:
        _guard.within(exercise.limit, lambda: exercise.test(answer, _guard.call))
    except Wrong as wrong:
        return Verdict("wrong", str(wrong), _message_id(exercise, str(wrong)))
    except _guard.OutOfTime:
        return Verdict("stopped", _about_time(exercise.limit), "time")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever an answer raises is its outcome
        return Verdict("raised", _about(error, answer), _error_id(error))
    limit = "" if _guard.can_limit() else "No time limit: this system or thread has no alarm."
    return Verdict("passed", limit, "passed")


def _message_id(exercise, sentence):
    names = (wrong.name for wrong in exercise.wrong if wrong.says in sentence)
    return next(names, f"{zlib.crc32(sentence.encode()):08x}")


def _error_id(error):
    name = type(error).__name__
    return name if hasattr(builtins, name) else "other error"


def _about_time(seconds):
    return (
        f"Your code was still running after {seconds:g} s. A loop may not end: "
        "check that each round brings its condition closer to false."
    )


def _about(error, answer):
    said = f"{type(error).__name__}: {_text_of(error)}".rstrip(": ")
    if isinstance(error, SystemExit):
        return f"{said}. It would end the whole notebook: let the code return instead."
    frames = list(_frames(error))
    lines = [line for code, line in frames if code.co_filename == _attempt.cell_of(answer)]
    if lines:
        where = f"in line {lines[-1]} of your cell"
        return f"{said} ({where}). Look at the values that this line receives."
    if any(code is _guard.call.__code__ for code, _ in frames):
        return f"{said}. Call your code with a small input of your own to see where it happens."
    return (
        f"{said}. This happened in the check, with what your code returned: "
        "compare its type and shape with the task."
    )


def _text_of(error):
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - a reader's own exception may not even print
        return "(its text cannot be shown)"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _frames(error):
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next
