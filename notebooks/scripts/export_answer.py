"""Load an exported model in a process that never saw its code; answer, and tell what it took.

Notebook 62 starts it as: python export_answer.py FORMAT FILE IMAGES
"""

import json
import sys
import time

start = time.perf_counter()
kind, path, images_path = sys.argv[1:]

import numpy as np

images = np.load(images_path)
if kind == "ONNX":
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    answers = session.run(None, {"input": images})[0]
else:
    import torch

    if kind == "exported program":
        model = torch.export.load(path).module()
    elif kind == "AOTInductor":
        model = torch._inductor.aoti_load_package(path)
    elif kind == "TorchScript":
        model = torch.jit.load(path)
    else:  # weights: they need the code of the network beside them
        layers = [torch.nn.Linear(64, 128), torch.nn.BatchNorm1d(128), torch.nn.ReLU()]
        model = torch.nn.Sequential(torch.nn.Flatten(), *layers, torch.nn.Linear(128, 10))
        model.load_state_dict(torch.load(path))
        model.eval()
    with torch.no_grad():
        answers = model(torch.from_numpy(images)).numpy()
seconds = time.perf_counter() - start

import psutil

found = {"seconds": seconds, "memory": psutil.Process().memory_info().rss}
print(json.dumps(found | {"torch": "torch" in sys.modules, "answers": answers.tolist()}))
