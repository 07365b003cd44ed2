"""Explore one idea at a time: each module computes on real tensors and draws what it found.

A widget is a plain object: stock controls above a picture, and behind them a picture and a table
for readers without a kernel.
"""
