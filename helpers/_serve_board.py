"""Serve TensorBoard on 127.0.0.1 until the standard input ends, which it does with its owner."""

import sys

from tensorboard import program


def serve(folder: str, points: str) -> None:
    """Start the server on a free port, write its address, and wait for the end of the input."""
    board = program.TensorBoard()
    arguments = ["--logdir", folder, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]
    arguments += ["--samples_per_plugin", f"scalars={points}", "--reload_interval", "1"]
    board.configure(argv=["tensorboard", *arguments])
    sys.stdout.write(board.launch() + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(*sys.argv[1:])
