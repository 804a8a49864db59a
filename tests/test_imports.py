"""Imports point one way, and `import newfound` stays light (rules R2, R3 and R4)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import newfound

ROOT = Path(newfound.__file__).parent
MODULES = {
    ".".join(("newfound", *path.relative_to(ROOT).with_suffix("").parts)): path
    for path in sorted(ROOT.rglob("*.py"))
}

#: The rooms in the order in which data walk through them. A module imports from its own room and
#: from rooms above it; the modules of the floor lie side by side in the package itself.
ROOMS = [
    *["_version", "words", "progress", "errors", "arrays", "labels", "files", "limits"],
    *["array_files", "own_folder", "metrics"],
    *["scale", "mixture", "data", "deep", "encode", "result", "workflows", "report", "review"],
    *["cli", "bench"],
    "__main__",
]
RANKS = {name: rank for rank, name in enumerate(ROOMS)}

#: Heavy packages, each with the rooms that may import it; the bench has losses of its own.
HOMES = {
    "torch": {"deep", "bench"},
    "torchvision": {"deep"},
    "timm": {"deep"},
    "dask": {"scale"},
    "distributed": {"scale"},
}
HEAVY = [
    "torch",
    "torchvision",
    "timm",
    "dask",
    "distributed",
    "pandas",
    "typer",
    "rich",
    "matplotlib",
]


def imports_of(tree, module, *, run_on_import=False):
    """Dotted names that a module imports; with `run_on_import`, only those of the import itself."""
    package = module.rpartition(".")[0]
    found = set()
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*parents, node.module or ""]).strip(".") if node.level else node.module
            found.update(f"{base}.{alias.name}" for alias in node.names)
        elif (
            run_on_import and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            pending.extend(node.orelse)
        elif not (run_on_import and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            pending.extend(ast.iter_child_nodes(node))
    return found


def room(name):
    """The part of the package that a dotted name is in: newfound.mixture.rows → mixture."""
    return [*name.split("."), "", ""][1]


def room_faults(tree, module):
    """What a module imports from later rooms, inside functions and for type checks as well."""
    return [
        name
        for name in imports_of(tree, module)
        if name.startswith("newfound.") and RANKS.get(room(name), -1) > RANKS[room(module)]
    ]


def parse(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def test_every_room_is_listed_and_every_listed_room_exists():
    assert {room(module) for module in MODULES} - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "newfound.__init__"])
def test_no_module_imports_from_a_later_room(module):
    assert room_faults(parse(module), module) == []


@pytest.mark.parametrize("module", MODULES)
def test_no_module_of_our_own_is_imported_by_a_string(module):
    """A type checker cannot see it, and neither can the walk above."""
    calls = [node for node in ast.walk(parse(module)) if isinstance(node, ast.Call)]
    named = [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] in ("require", "import_module", "__import__")
        and call.args
        and ast.unparse(call.args[0]).strip("f'\"").startswith("newfound")
    ]
    assert named == []


def test_the_package_itself_imports_its_version_only():
    names = imports_of(parse("newfound.__init__"), "newfound.__init__", run_on_import=True)
    assert {name for name in names if name.startswith("newfound")} == {
        "newfound._version.__version__"
    }


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_are_imported_in_their_own_room_only(module):
    packages = {name.partition(".")[0] for name in imports_of(parse(module), module)}
    strangers = [name for name in packages if room(module) not in HOMES.get(name, {room(module)})]
    assert strangers == []


def test_no_two_modules_import_each_other():
    graph = {
        module: {
            other
            for name in imports_of(parse(module), module, run_on_import=True)
            for other in (name, name.rpartition(".")[0])
            if other in MODULES
        }
        for module in MODULES
    }
    while leaves := [module for module, needs in graph.items() if not needs]:
        graph = {
            module: needs - set(leaves) for module, needs in graph.items() if module not in leaves
        }
    assert graph == {}, "these import each other in a circle"


@pytest.mark.parametrize(
    "source",
    [
        "import newfound.cli",
        "from newfound.cli import app",
        "from newfound import cli",
        "from .. import cli",
        "from ..cli import app",
        "try:\n    import newfound.cli\nexcept ImportError:\n    pass",
        "class A:\n    from newfound.cli import app",
    ],
)
def test_the_walk_sees_an_import_however_it_is_written(source):
    assert room_faults(ast.parse(source), "newfound.mixture.rows")


@pytest.mark.parametrize(
    "source",
    [
        "import newfound",
        "from newfound.labels import encode_labels",
        "from . import stats",
    ],
)
def test_the_walk_lets_other_imports_pass(source):
    assert room_faults(ast.parse(source), "newfound.mixture.rows") == []


def test_the_walk_sees_heavy_imports_inside_functions():
    tree = ast.parse("def f():\n    from torch import nn")
    assert imports_of(tree, "newfound.cli") == {"torch.nn"}


@pytest.mark.parametrize("name", ["utils.py", "common.py", "helpers.py"])
def test_no_room_for_odds_and_ends(name):
    assert [path for path in MODULES.values() if path.name == name] == []


def run_python(program):
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_import_newfound_loads_nothing_heavy():
    loaded = run_python("import sys, newfound; print(*sys.modules)")
    assert "newfound" in loaded
    assert set(loaded).isdisjoint(HEAVY)


def test_estimators_work_with_numpy_scipy_and_scikit_learn_only():
    """As on a machine where nothing else is installed."""
    program = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import newfound
X = [[0.0, 1.0], [0.1, 1.0], [5.0, 1.0], [5.1, 1.0]]
newfound.SplitMergeMixture, newfound.Projection(1).fit(X)
print(*newfound.SemiSupervisedKMeans(2, random_state=0).fit(X, [-1, -1, 0, -1]).labels_)
"""
    assert run_python(program) == ["1", "1", "0", "0"]


@pytest.mark.parametrize("name", newfound.__all__)
def test_public_names_resolve_and_are_listed(name):
    assert getattr(newfound, name) is not None
    assert name in dir(newfound)


def test_public_names_are_what_they_say():
    for name, home in newfound._HOMES.items():
        assert getattr(newfound, name).__name__ == name
        assert getattr(newfound, name).__module__ == home
    assert set(newfound._HOMES) < set(newfound.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'newfound' has no attribute 'NoSuchThing'"):
        _ = newfound.NoSuchThing
