"""Log 1,000 records in one of several ways, say that they are written, and wait for the kill."""

import json
import logging
import sys
import time

way, path = sys.argv[1:]
records = [{"step": n, "loss": round(1 / (n + 1), 6)} for n in range(1000)]
lines = [json.dumps(record) + "\n" for record in records]

if way == "list, dumped at the end":
    kept = list(records)
elif way == "logging":
    logger = logging.getLogger("run")
    logger.addHandler(logging.FileHandler(path, encoding="utf-8"))
    for line in lines:
        logger.warning(line.rstrip())
elif way == "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(path)
    for record in records:
        writer.add_scalar("loss", record["loss"], record["step"])
else:
    log = open(path, "w", buffering=1 if way == "line by line" else -1, encoding="utf-8")  # noqa: SIM115 - the kill ends it
    for line in lines:
        log.write(line)
        if way == "write, flush":
            log.flush()

print("written", flush=True)
time.sleep(30)
