"""Tests that need a browser; run by course.py test-browser."""
