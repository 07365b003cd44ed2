# Short names for course.py. More arguments: make test ARGS="tests/test_course.py -q"
PYTHON ?= python3

.PHONY: help lab test test-twice test-browser check notebooks new stamp bench gpu-check doctor
help:
	@$(PYTHON) course.py help

lab test test-twice test-browser check notebooks new stamp bench gpu-check doctor:
	@$(PYTHON) course.py $@ $(ARGS)
