"""Describe predictions and exercises as data, the form in which exercises/nbNN.py holds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


class Wrong(Exception):  # noqa: N818 - the word a test of an exercise reads by: raise Wrong("...")
    """Carry the sentence that teaches; a test raises it when an answer is wrong."""


@dataclass(frozen=True)
class Choice:
    """Ask for one of several outcomes, each wrong one a misconception with its own sentence.

    Parameters
    ----------
    question : str
        The question, in words that do not give the answer away.
    options : mapping of str to str
        Option to the sentence that is shown to those who guessed it. ``reveal`` compares an
        option with ``str(value)``; ``"an error"`` stands for any exception.

    Raises
    ------
    ValueError
        If there are fewer than two options.

    Examples
    --------
    >>> Choice(question="Which is it?", options={"0.0": "It moved.", "7.0": "Shared."}).question
    'Which is it?'
    """

    question: str
    options: Mapping[str, str]

    def __post_init__(self):
        if len(self.options) < 2:
            raise ValueError(
                f"options must hold at least two outcomes, got {len(self.options)}; "
                "add the outcome that a misconception predicts"
            )


@dataclass(frozen=True)
class Number:
    """Ask for a quantity, which is judged by its factor to the measurement.

    Parameters
    ----------
    question : str
        The question, in words that do not give the answer away.
    unit : str
        ``"bytes"``, ``"s"``, ``"ratio"``, or a plural noun such as ``"conversions"``.
    notes : tuple of (low, high, sentence)
        The sentence is shown for guesses in ``[low, high)``, in bytes, seconds or counts.
    signed : bool
        Whether a guess below zero makes sense.
    among : int, optional
        For a count out of so many things: guesses are whole numbers from 0 to `among`, judged by
        how many they are off. Everything else is judged by its factor.

    Raises
    ------
    ValueError
        If a note has no room between its low and its high end, or if `among` counts nothing.

    Examples
    --------
    >>> Number(question="How many share?", unit="conversions").unit
    'conversions'
    """

    question: str
    unit: str = ""
    notes: tuple[tuple[float, float, str], ...] = ()
    signed: bool = False
    among: int | None = None

    def __post_init__(self):
        if self.among is not None and not self.among > 0:
            raise ValueError(
                f"among must be a positive number of things, got {self.among}; leave it out "
                "for a quantity without a largest value"
            )
        for low, high, _ in self.notes:
            if not low < high:
                raise ValueError(
                    f"a note must go from low to high, got ({low}, {high}); swap the two"
                )


@dataclass(frozen=True)
class WrongAnswer:
    """Store an answer that the test must refuse, with the sentence it must give.

    Parameters
    ----------
    name : str
        The misconception in a few words; the progress record keeps this name, never the sentence.
    source : str
        Complete source of the wrong answer.
    says : str
        A fragment of the sentence that the test must give.

    Examples
    --------
    >>> WrongAnswer(name="detach only", source="def f(w): return w.detach()", says="storage").name
    'detach only'
    """

    name: str
    source: str
    says: str


@dataclass(frozen=True)
class Exercise:
    """Hold one exercise: what the reader sees, how it is tested, and what helps.

    Parameters
    ----------
    title, task : str
        What to do; the task in at most 60 words.
    minutes : int
        Time a reader needs.
    stub : str
        Source that stands in the notebook, at most 12 lines.
    answer : str
        Name of the function, class or variable that the stub defines and the reader completes.
    test : callable
        ``test(answer, call)`` returns if the answer is right and raises ``Wrong(sentence)``
        if not. It calls the reader's code through ``call(function, *args)``, which notices a
        changed input; ``call(function, *args, may_change=(0,))`` allows it for argument 0.
        Random numbers are seeded by the exercise's id, so that the same answer gets the same
        sentence.
    hints : tuple of str
        Three rungs: a property, a counter-example, the first line.
    solution : str
        Source that passes.
    wrong : tuple of WrongAnswer
        Answers that the test must refuse.
    limit : float
        Seconds after which the test is stopped.

    Raises
    ------
    ValueError
        If the limit is not positive.

    Examples
    --------
    >>> def test(answer, call):
    ...     if call(answer, 2) != 4:
    ...         raise Wrong("Twice two is four.")
    >>> Exercise(title="Double a number", minutes=1, task="Return twice x.", answer="double",
    ...          stub="def double(x):\\n    ...\\n", test=test, hints=("a", "b", "c"),
    ...          solution="def double(x):\\n    return 2 * x\\n").limit
    10.0
    """

    title: str
    minutes: int
    task: str
    stub: str
    answer: str
    test: Callable
    hints: tuple[str, ...]
    solution: str
    wrong: tuple[WrongAnswer, ...] = ()
    limit: float = 10.0

    def __post_init__(self):
        if not self.limit > 0:
            raise ValueError(f"limit must be positive, got {self.limit} s; 10 suits most exercises")
