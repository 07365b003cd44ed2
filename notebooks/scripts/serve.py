"""Serve an ONNX model of handwritten digits over HTTP.

By hand::

    python serve.py digits.onnx --port 8000
    curl 127.0.0.1:8000/predict -H "Content-Type: application/json" -d '{"pixels": [0, 1.5, ...]}'

``POST /predict`` takes 64 pixels from 0 to 16. ``GET /health`` says whether it works, and
``GET /metrics`` what it has done. Ctrl-C or SIGTERM: it answers what it has accepted, then ends.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, HTTPException, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

Pixel = Annotated[float, Field(strict=True, ge=0, le=16, allow_inf_nan=False)]


class Digit(BaseModel):
    """What a caller may send; strict: "3" and true are no numbers."""

    pixels: Annotated[list[Pixel], Field(min_length=64, max_length=64)]


class Batcher:
    """Collect rows that wait, run the model on them together, and hand out the results."""

    def __init__(self, options):
        """Open the model; ONNX Runtime's waiting threads sleep."""
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(options.model, settings, providers=providers)
        self.input = self.session.get_inputs()[0].name
        self.options = options
        self.queue = asyncio.Queue(options.max_queue)
        self.executor = ThreadPoolExecutor(1)  # the event loop stays free for health checks
        self.counts = collections.Counter(batches=0, rows=0)

    async def answer(self, row):
        """Queue one row; return its scores, the rows of its batch, and the model's seconds."""
        future = asyncio.get_running_loop().create_future()
        try:
            self.queue.put_nowait((row, future))
        except asyncio.QueueFull:
            reason = f"{self.options.max_queue} requests are waiting; try again later"
            raise HTTPException(503, reason, {"Retry-After": "1"}) from None
        return await future

    async def collect(self):
        """Wait for one row, then for more until the batch is full or the window closes."""
        batch = [await self.queue.get()]
        end = asyncio.get_running_loop().time() + self.options.window_ms / 1e3
        with contextlib.suppress(TimeoutError):
            while len(batch) < self.options.max_batch:
                if not self.queue.empty():
                    batch.append(self.queue.get_nowait())
                    continue
                async with asyncio.timeout_at(end):
                    batch.append(await self.queue.get())
        return [(row, future) for row, future in batch if not future.done()]

    def run(self, rows):
        """Return the scores of each row and the seconds it took; runs in the executor."""
        start = time.perf_counter()
        scores = self.session.run(None, {self.input: np.stack(rows)})[0]
        time.sleep(max(0.0, start + self.options.pad_ms / 1e3 - time.perf_counter()))
        return scores, time.perf_counter() - start

    async def work(self):
        """Answer batch after batch. Rows are valid here, so a failure is the server's own."""
        loop = asyncio.get_running_loop()
        while True:
            if not (batch := await self.collect()):
                continue
            self.counts.update(batches=1, rows=len(batch))
            try:
                rows = [row for row, _ in batch]
                scores, seconds = await loop.run_in_executor(self.executor, self.run, rows)
                results = [(row, len(batch), seconds) for row in scores]
            except Exception:  # noqa: BLE001 - this loop must outlive it
                results = [HTTPException(500, "the model failed")] * len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():  # its caller was cancelled in the meantime
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)


class Limit:
    """Refuse a body that is too large (413) or too late (408), and count the answers."""

    def __init__(self, app, options, counts):
        """Wrap an application."""
        self.app, self.options, self.counts = app, options, counts

    async def __call__(self, scope, receive, send):
        """Read the body, and pass it on whole or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def counted(message):
            if message["type"] == "http.response.start":
                self.counts[f'answers{{status="{message["status"]}"}}'] += 1
            await send(message)

        body, size, late = await self.read(scope, receive)
        if size > self.options.body_limit:
            large = f"the body must have at most {self.options.body_limit} bytes"
            return await self.refuse(413, large, scope, receive, counted)
        if late:
            slow = f"the body must arrive within {self.options.body_timeout:g} s"
            return await self.refuse(408, slow, scope, receive, counted)
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay():
            return parts.pop() if parts else await receive()

        return await self.app(scope, replay, counted)

    async def read(self, scope, receive):
        """Return the body, its size, declared or real, and whether its end came too late."""
        limit = self.options.body_limit
        size, seen, body, more = int(dict(scope["headers"]).get(b"content-length", 0)), 0, b"", True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.body_timeout):
                # Some way beyond the limit: a caller who is cut off while sending hears no reason.
                while more and seen <= 1000 * limit:
                    message = await receive()
                    part = message.get("body", b"")
                    more = message.get("more_body", False)  # a caller who left sends nothing more
                    seen += len(part)
                    body = body + part if seen <= limit else b""
        return body, max(size, seen), more

    async def refuse(self, status, reason, *channel):
        """Answer, and close the connection: the rest of the body is not wanted."""
        answer = JSONResponse({"detail": reason}, status, {"Connection": "close"})
        await answer(*channel)


def build(options):
    """Make the application: its routes, its queue, the one task that runs the model."""

    @contextlib.asynccontextmanager
    async def lifespan(app):
        batcher.executor.submit(batcher.run, [np.zeros(64, np.float32)]).result()  # warm-up
        task = asyncio.create_task(batcher.work())
        yield  # uvicorn comes back here when everything accepted is answered
        task.cancel()

    batcher = Batcher(options)
    app = FastAPI(lifespan=lifespan)
    app.add_middleware(Limit, options=options, counts=batcher.counts)

    @app.exception_handler(RequestValidationError)
    async def explain(_, error):
        # Without the input: a NaN in it could not be sent back as JSON.
        places = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()[:3]]
        return JSONResponse({"detail": [f"{place}: {why}" for place, why in places]}, 422)

    @app.post("/predict")
    async def predict(digit: Digit, response: Response):
        scores, rows, seconds = await batcher.answer(np.array(digit.pixels, np.float32))
        response.headers["Server-Timing"] = f"model;dur={seconds * 1e3:.3f}"
        return {"digit": int(scores.argmax()), "scores": scores.tolist(), "rows": rows}

    @app.get("/health")
    async def health():
        return {"status": "ok", "waiting": batcher.queue.qsize()}

    @app.get("/metrics")
    async def metrics():
        lines = [f"{name} {count}" for name, count in sorted(batcher.counts.items())]
        return PlainTextResponse("\n".join([*lines, f"waiting {batcher.queue.qsize()}", ""]))

    return app


def read_options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--threads", type=int, default=1, help="of one run of the model")
    parser.add_argument("--max-batch", type=int, default=8, help="rows in one run")
    parser.add_argument("--window-ms", type=float, default=0.0, help="wait so long for more rows")
    parser.add_argument("--max-queue", type=int, default=64, help="then 503; 0: no bound")
    parser.add_argument("--pad-ms", type=float, default=0.0, help="a run takes at least so long")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds for the last answers")
    parser.add_argument("--body-limit", type=int, default=4096, help="bytes")
    parser.add_argument("--body-timeout", type=float, default=2.0, help="seconds")
    parser.add_argument("--until-input-ends", action="store_true", help="end with the owner")
    return parser.parse_args()


def main():
    """Say where it listens, as one line of JSON, and serve until it is told to end."""
    options = read_options()
    config = uvicorn.Config(
        build(options), log_level="warning", access_log=False, limit_concurrency=1000,
        timeout_graceful_shutdown=options.grace,
    )  # fmt: skip
    server = uvicorn.Server(config)
    # The protocol must be named: else asyncio leaves Nagle's algorithm on, and small answers wait.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen(1024)
    if options.until_input_ends:

        def wait_for_end():
            sys.stdin.read()
            server.should_exit = True

        threading.Thread(target=wait_for_end, daemon=True).start()
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
