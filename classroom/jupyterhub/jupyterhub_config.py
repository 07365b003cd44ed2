"""Configure JupyterHub for a class that works in one course folder: a recipe to adapt.

COURSE names a checkout of the course and COURSE_VENV its environment; readers may read both
and write neither. Add your own authenticator, and the limits of your own spawner.

    COURSE=/srv/measured-pytorch COURSE_VENV=/srv/course-env jupyterhub -f jupyterhub_config.py
"""

import os

COURSE, COURSE_VENV = os.environ["COURSE"], os.environ["COURSE_VENV"]

c = get_config()  # noqa: F821 - JupyterHub defines it
c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # put your server with https in front of it
c.Spawner.cmd = ["sh", f"{COURSE}/classroom/jupyterhub/start_server.sh"]
c.Spawner.environment = {
    "COURSE": COURSE,
    "COURSE_VENV": COURSE_VENV,
    "OMP_NUM_THREADS": "1",  # course.py shared-server says which number fits
}
c.Spawner.notebook_dir = "~"
c.Spawner.default_url = "/lab/tree/measured-pytorch/00_start_here.ipynb"
c.Spawner.args = [f"--LabApp.app_settings_dir={COURSE}/tools/lab_settings"]
c.Spawner.http_timeout = 120  # seconds; twenty servers start at once when a class begins
