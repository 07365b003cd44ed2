#!/bin/sh
# Start one reader's server: lay the copies in the reader's own folder, then hand over.
# COURSE and COURSE_VENV come from jupyterhub_config.py.
set -eu
export COURSE_WORKBOOK="${COURSE_WORKBOOK:-$HOME/measured-pytorch}"
export COURSE_HOME="${COURSE_HOME:-$HOME/.measured-pytorch}"
export PYTHONSTARTUP="$COURSE/tools/kernel_startup.py"
export JUPYTER_PREFER_ENV_PATH=1
export PYTHONDONTWRITEBYTECODE=1
cd "$COURSE"
"$COURSE_VENV/bin/python" -m tools.workbook
cd "$HOME"
exec "$COURSE_VENV/bin/jupyterhub-singleuser" "$@"
