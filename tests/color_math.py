"""Compute with colors as WCAG 2 and sRGB define them, apart from the code under test."""


def linear(color):
    """Return the linear red, green and blue of a color such as ``#2A71E4``, from 0 to 1."""
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def contrast(one, other):
    """Return the contrast ratio of two colors, from 1 to 21."""
    weights = (0.2126, 0.7152, 0.0722)
    low, high = sorted(
        sum(w * c for w, c in zip(weights, linear(color), strict=True)) for color in (one, other)
    )
    return (high + 0.05) / (low + 0.05)
