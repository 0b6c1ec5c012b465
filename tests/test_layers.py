"""The layers of the package: each imports only from itself and from those before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import cwbc

PACKAGE = Path(cwbc.__file__).parent
LAYERS = (
    "system",
    "core",
    "envs",
    "behaviours",
    "data",
    "results",
    "runs",
    "grids",
    "reports",
    "paper",
    "cli",
)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that import from this package, with the layer that they import from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "cwbc":
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cwbc."):
            yield node.lineno, str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from ((node.lineno, name[1]) for name in names if name[0] == "cwbc" and len(name) > 1)


def test_the_layers_are_those_of_the_package() -> None:
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert found == set(LAYERS)


def test_each_layer_imports_only_from_those_before_it() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}, line {line}: imports {layer}"
        for number, own in enumerate(LAYERS)
        for path in sorted((PACKAGE / own).rglob("*.py"))
        for line, layer in imports(path)
        if layer not in LAYERS[: number + 1]
    ]
    assert not wrong, "\n".join(wrong)


def test_a_class_name_is_that_of_one_module() -> None:
    homes: dict[str, list[str]] = {}
    copied = PACKAGE / "runs" / "export" / "numpy_policy.py"  # has names of its own where it is used
    for path in sorted({*PACKAGE.rglob("*.py")} - {copied}):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    several = {name: where for name, where in homes.items() if len(where) > 1 and not name.startswith("_")}
    assert not several
