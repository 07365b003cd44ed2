"""pyproject.toml, constraints.txt and environment.yml install the same things."""

import re
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import course
from helpers import __version__, doctor
from helpers._paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
LISTS = {"base": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
REQUIREMENTS = [Requirement(text) for texts in LISTS.values() for text in texts]


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    return [Requirement(text) for text in texts if text]


PINS = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins()}


def test_constraints_hold_one_exact_version_of_each_package():
    assert all(re.fullmatch(r"==[0-9][0-9a-z.]*", str(pin.specifier)) for pin in pins())
    assert len(PINS) == len(pins())


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_each_dependency_is_pinned_inside_its_bounds(requirement):
    version = PINS.get(canonicalize_name(requirement.name))
    assert version is not None, f"constraints.txt has no {requirement.name}"
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_no_dependency_has_an_upper_bound(requirement):
    assert {clause.operator for clause in requirement.specifier} <= {">="}


@pytest.mark.skipif(sys.platform != "linux", reason="some pins are for Linux alone")
def test_nothing_is_pinned_that_nothing_needs():
    """Walk from pyproject.toml through the packages that are installed here."""
    needed, waiting = set(), list(REQUIREMENTS)
    while waiting:
        requirement = waiting.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in needed:
            continue
        needed.add(key)
        try:
            texts = metadata.requires(requirement.name) or []
        except metadata.PackageNotFoundError:
            continue  # needed on another system or by an older Python
        waiting += [
            child
            for child in map(Requirement, texts)
            if not child.marker
            or any(child.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras))
        ]
    assert set(PINS) - {name for name, _ in needed} == set()


def test_what_a_package_needs_here_is_pinned_too():
    """Otherwise the environment of tomorrow is another one than that of the tests."""
    missing = set()
    for name in PINS:
        try:
            texts = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for child in map(Requirement, texts):
            if child.marker is None or child.marker.evaluate({"extra": ""}):
                missing.add(canonicalize_name(child.name))
    # On Linux the default wheel of torch brings CUDA at the versions that it names itself.
    cuda = {name for name in missing if name.startswith(("nvidia-", "cuda-"))} | {"triton"}
    assert missing - set(PINS) - cuda - {"setuptools"} == set()


def test_conda_adds_python_and_pip_and_nothing_else():
    *conda, from_pip = CONDA["dependencies"]
    assert [text.partition("=")[0] for text in conda] == ["python", "pip"]
    assert from_pip == {"pip": ["-c constraints.txt", "-e .[deploy,test]"]}
    assert "test" in PROJECT["optional-dependencies"]


def test_conda_takes_a_python_that_the_course_supports():
    version = CONDA["dependencies"][0].partition("=")[2]
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


def test_every_place_names_the_same_pythons():
    oldest, newest = course.OLDEST, course.NEWEST
    wanted = f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(wanted)
    assert (oldest, newest) == doctor._PYTHONS
    minors = range(oldest[1], newest[1] + 1)
    assert sorted(course.OTHERS) == [f"3.{minor}" for minor in minors]


def test_the_doctor_asks_for_the_same_torch_and_numpy():
    bounds = {requirement.name: str(requirement.specifier) for requirement in REQUIREMENTS}
    assert {name: f">={major}.{minor}" for name, (major, minor) in doctor._FLOORS.items()} == {
        name: bounds[name] for name in doctor._FLOORS
    }


def test_every_command_installs_an_extra_that_exists():
    extras = {extra for names, _ in course.COMMANDS.values() for extra in names.split()}
    assert extras <= set(PROJECT["optional-dependencies"])


def test_the_package_and_the_helpers_have_the_same_version():
    assert PROJECT["version"] == __version__


def test_every_python_package_is_installed():
    """setuptools installs the packages that are named, and no other."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    found = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for top in ("helpers", "exercises")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert set(packages) == found


@pytest.mark.parametrize("python", ["3.11.0", "3.12.0", "3.13.0", "3.14.0"])
def test_each_pin_can_be_installed_on_every_python_of_the_course(python):
    """Debian 12 has 3.11.2: a pin that needs 3.11.5 ends its first start."""
    refused = []
    for name, version in PINS.items():
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        needs = package.metadata.get("Requires-Python") or ""
        if package.version == version and not SpecifierSet(needs).contains(python):
            refused.append(f"{name} {version} needs {needs}")
    assert refused == []
