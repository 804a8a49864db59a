"""The extras of pyproject.toml install what the code uses, and nothing else."""

import ast
import re
import sys
from pathlib import Path

import pytest

import newfound

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings tomli
    import tomli as tomllib

ROOT = Path(newfound.__file__).parent
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]

#: Distributions whose module has another name.
MODULES = {"pillow": "PIL", "scikit-learn": "sklearn"}

#: Modules that come with other packages of the extra: the hub with timm, the others with the
#: sentence encoder.
INDIRECT = {
    "train": {"huggingface_hub"},
    "offline": {"sentence_transformers", "torch", "transformers"},
}

#: Rooms in which a module may also be named by a text: there, packages are chosen at run time.
CHOSEN_BY_NAME = ("deep/network", "encode")


def modules_of(requirements):
    """Names of the modules that a list of requirements installs."""
    names = [re.match(r"[\w.-]+", requirement).group() for requirement in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names if name != "newfound"}


EXTRAS = {
    name: modules_of(requirements)
    for name, requirements in PROJECT["optional-dependencies"].items()
    if name not in ("dev", "docs", "all")
}


def requires_in(tree):
    """The module and the extra of each `require` that names its module by a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "require" and node.args:
            values = [*node.args, *[keyword.value for keyword in node.keywords]]
            if isinstance(values[0], ast.Constant) and not values[0].value.startswith("newfound"):
                yield values[0].value, ast.literal_eval(values[1])


def imported_packages(tree):
    """Top-level names of what a module imports, by statement or by `require`."""
    found = {name.partition(".")[0] for name, _ in requires_in(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
            if node.module == "torch.utils.tensorboard":  # a thin layer over tensorboard
                found.add("tensorboard")
    return found


def texts_in(tree):
    """Patterns for the texts in a module; a gap in an f-string matches anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+"
                for part in node.values
            )


IMPORTED = {name for tree in SOURCES.values() for name in imported_packages(tree)}
NAMED = {
    text
    for path, tree in SOURCES.items()
    if path.relative_to(ROOT).as_posix().startswith(CHOSEN_BY_NAME)
    for text in texts_in(tree)
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_package_of_an_extra_is_used(extra):
    unused = EXTRAS[extra] - IMPORTED
    if extra == "offline":
        unused = {name for name in unused if not any(re.fullmatch(text, name) for text in NAMED)}
    assert unused == set()


def test_every_dependency_is_used():
    assert modules_of(PROJECT["dependencies"]) - IMPORTED == set()


def test_every_imported_package_is_installed_by_something():
    known = modules_of(PROJECT["dependencies"]).union(*EXTRAS.values(), *INDIRECT.values())
    assert IMPORTED - known - sys.stdlib_module_names - {"newfound"} == set()


def test_every_missing_package_is_reported_with_an_extra_that_installs_it():
    wrong = [
        (path.name, module, extra)
        for path, tree in SOURCES.items()
        for module, extra in requires_in(tree)
        if module.partition(".")[0] not in EXTRAS[extra] | INDIRECT.get(extra, set())
    ]
    assert wrong == []


def test_all_installs_every_extra():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert everything == f"newfound[{','.join(EXTRAS)}]"


def test_the_walk_sees_every_way_to_name_a_package():
    source = 'import a.b\nfrom c.d import e\nrequire("f.g", "x")\nrequire("h", extra="y")'
    tree = ast.parse(source)
    assert imported_packages(tree) == {"a", "c", "f", "h"}
    assert list(requires_in(tree)) == [("f.g", "x"), ("h", "y")]
    patterns = list(texts_in(ast.parse('f"lite{n}_model"')))
    assert any(re.fullmatch(text, "lite0_model") for text in patterns)
    assert not any(re.fullmatch(text, "lite_model") for text in patterns)
