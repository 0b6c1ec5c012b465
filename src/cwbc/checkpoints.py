"""Arrays and their description in one safetensors file: safe to load, and replaced in one step."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from cwbc.errors import InputError
from cwbc.files import write_atomically

CHECKPOINT = "checkpoint.safetensors"  # in a run directory
FORMAT = 1
_KEY = "cwbc"  # where the description stands among the file's metadata


def flatten(prefix: str, tree: Any) -> dict[str, NDArray[Any]]:
    """The leaves of a tree of arrays by their path, copied to the host."""
    import jax  # here alone: reading a file needs none of it

    leaves, _ = jax.tree_util.tree_flatten_with_path(jax.device_get(tree))
    return {_name(prefix, path): np.asarray(leaf) for path, leaf in leaves}


def unflatten(prefix: str, like: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    """The tree of the same form as `like` that flatten took apart."""
    import jax

    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree_util.tree_unflatten(structure, [tensors[_name(prefix, path)] for path, _ in leaves])


def nested(prefix: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The tensors below a prefix as nested dictionaries."""
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if not name.startswith(f"{prefix}/"):
            continue
        _, *parents, leaf = name.split("/")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[leaf] = tensor
    return tree


def write(
    path: Path,
    tensors: dict[str, NDArray[Any]],
    description: dict[str, Any],
    before_replacing: Callable[[], None] = lambda: None,
) -> None:
    """Replace the file at `path`; a reader finds the old one or the new one, never a part."""
    metadata = {_KEY: json.dumps({"format": FORMAT, **description})}
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    write_atomically(path, safetensors.numpy.save(contiguous, metadata), before_replacing)


def read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the description of a file that write made."""
    with _opened(path) as (file, description):
        return {name: file.get_tensor(name) for name in file.keys()}, description  # noqa: SIM118


def read_description(path: Path) -> dict[str, Any]:
    """The description alone."""
    with _opened(path) as (_, description):
        return description


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            description = json.loads((file.metadata() or {})[_KEY])
            if description.get("format") != FORMAT:
                found = description.get("format")
                raise InputError(f"{path} has format {found}; this version of cwbc reads format {FORMAT}")
            yield file, description
    except InputError:
        raise
    except (OSError, safetensors.SafetensorError, KeyError, ValueError) as error:
        told = f"{path} is not a file that cwbc saved, or it is damaged: {error}"
        remedy = f"; move {path.parent} away, and the command that began the run trains it anew"
        raise InputError(told + (remedy if path.name == CHECKPOINT else "")) from error


def _name(prefix: str, path: tuple[Any, ...]) -> str:
    import jax

    return "/".join([prefix, jax.tree_util.keystr(path, simple=True, separator="/")])
