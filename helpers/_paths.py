"""Say where the checkout lies, for modules that read its data files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
