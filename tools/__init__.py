"""Hold one module for each command of course.py."""
