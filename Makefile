# Short names for course.py. More arguments: make test ARGS="tests/test_course.py -q"
PYTHON ?= python3

.PHONY: help lab test test-twice test-browser test-colab check notebooks new stamp bench gpu-check doctor \
	site class classroom shared-server wheelhouse
help:
	@$(PYTHON) course.py help

lab test test-twice test-browser test-colab check notebooks new stamp bench gpu-check doctor \
	site class classroom shared-server wheelhouse:
	@$(PYTHON) course.py $@ $(ARGS)
