"""Exercises and predictions for the tests of the engine, in the format of exercises/nbNN.py."""

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "98.p1": Choice(
        question="What is tensor[0] now?",
        options={
            "0.0": "A conversion is not a copy.",
            "7.0": "Both look at the same bytes.",
            "an error": "Two owners are allowed.",
        },
    ),
    "98.p2": Number(
        question="How many bytes does training need?",
        unit="bytes",
        notes=((0, 40 * 2**30, "Gradients and moments are missing."), (40 * 2**30, 1e15, "Good.")),
    ),
    "98.p3": Number(question="How many share?", unit="conversions"),
    "98.p4": Number(question="Which slope?", unit="ratio", signed=True),
    "98.p5": Number(question="How long does it take?", unit="s"),
    "98.p6": Number(question="How many of twelve share?", unit="conversions", among=12),
}


def test_double(answer, call):
    for number in (0, 2, 5):
        if call(answer, [number]) != [2 * number]:
            raise Wrong(f"Twice {number} is {2 * number}.")


test_double.__test__ = False


def test_box(answer, call):
    if call(answer(3).twice) != 6:
        raise Wrong("A box of 3 holds 6 twice over.")


test_box.__test__ = False


def test_shares(answer, call):
    if answer["from_numpy"] is not True:
        raise Wrong("from_numpy shares: nothing was copied.")
    if answer["tensor"] is not False:
        raise Wrong("torch.tensor always copies.")


test_shares.__test__ = False

EXERCISES = {
    "98.1": Exercise(
        title="Double each number",
        minutes=2,
        task="Return a new list that holds each number twice as large.",
        stub='def double(numbers):\n    """Return a new list."""\n    ...\n',
        answer="double",
        test=test_double,
        hints=("Every number changes.", "[2] becomes [4], not [2, 2].", "`return [`"),
        solution="def double(numbers):\n    return [2 * n for n in numbers]\n",
        wrong=(
            WrongAnswer(
                "repeats", "def double(numbers):\n    return numbers * 2\n", "Twice 0 is 0"
            ),
            WrongAnswer(
                "in place",
                "def double(numbers):\n    numbers[0] *= 2\n    return numbers\n",
                "Twice",
            ),
        ),
        limit=1.0,
    ),
    "98.2": Exercise(
        title="Build a box",
        minutes=2,
        task="Let twice return two times the content.",
        stub="class Box:\n    def __init__(self, content):\n        self.content = content\n\n"
        "    def twice(self):\n        ...\n",
        answer="Box",
        test=test_box,
        hints=("a", "b", "c"),
        solution="class Box:\n    def __init__(self, content):\n        self.content = content\n\n"
        "    def twice(self):\n        return 2 * self.content\n",
        limit=1.0,
    ),
    "98.3": Exercise(
        title="Say which share",
        minutes=2,
        task="Write True or False for each.",
        stub='shares = {"from_numpy": ..., "tensor": ...}\n',
        answer="shares",
        test=test_shares,
        hints=("a", "b", "c"),
        solution='shares = {"from_numpy": True, "tensor": False}\n',
        limit=1.0,
    ),
    "98.4": Exercise(
        title="Name a class without a method",
        minutes=1,
        task="Give it a body.",
        stub="class Empty(Exception):\n    ...\n",
        answer="Empty",
        test=lambda answer, call: call(answer),
        hints=("a", "b", "c"),
        solution="class Empty(Exception):\n    word = 1\n",
        limit=1.0,
    ),
}
