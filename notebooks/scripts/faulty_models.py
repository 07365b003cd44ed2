# ruff: noqa: D101, D103
"""Six models that train on a laptop. Each has one fault that another device would show."""

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(8, 4)

    def forward(self, x):
        return x + self.places(torch.arange(len(x)))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mix = torch.eye(4)

    def forward(self, x):
        return self.layer(x) @ self.mix


def basis(n):
    return torch.eye(n)


class Projected(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) @ basis(4)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


class Scaled(nn.Module):
    def forward(self, x):
        self.scale = torch.ones(4, requires_grad=True).to(x.device)
        return x * self.scale


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        self.peak = torch.cuda.max_memory_allocated()
        return y
