"""Arrays and their description in one safetensors file: safe to load, and replaced in one step."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically

Tensors = dict[str, NDArray[Any]]  # by their names

CHECKPOINT = "checkpoint.safetensors"  # in a run directory
FORMAT = 2  # 1 had no checksums
_KEY = "cwbc"  # where the description stands among the file's metadata
_CHECKSUM = "cwbc checksum"  # and its checksum
_HASHES = "tensors"  # where the description has the checksum of every tensor
# Besides a file's own errors, what descriptions of wrong kinds lead to.
_UNREADABLE = (
    OSError, safetensors.SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError,
)  # fmt: skip


def flatten(prefix: str, tree: Any) -> Tensors:
    """The leaves of a tree of arrays by their path, copied to the host."""
    import jax  # only here: reading a file does not need it

    return {name: np.asarray(leaf) for name, leaf in _named(prefix, jax.device_get(tree)).items()}


def unflatten(path: Path, prefix: str, like: Any, tensors: Tensors) -> Any:
    """The tree with the structure of `like` from flattened tensors; names, kinds and shapes are compared."""
    import jax

    wanted = _named(prefix, like)
    found = {name for name in tensors if name.startswith(f"{prefix}/")}
    if unknown := sorted(found - wanted.keys()):
        raise InputError(f"{path} has a tensor {unknown[0]}, which its description has no place for")
    for name, leaf in wanted.items():
        if name not in tensors:
            raise InputError(f"{path} lacks the tensor {name}, or another version of cwbc or optax wrote it")
        check_tensor(path, name, tensors[name], leaf.shape, np.dtype(leaf.dtype))
    return jax.tree.unflatten(jax.tree.structure(like), [tensors[name] for name in wanted])


def _named(prefix: str, tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        f"{prefix}/{jax.tree_util.keystr(path, simple=True, separator='/')}": leaf for path, leaf in leaves
    }


def check_tensor(
    path: Path, name: str, tensor: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Raise an error for a tensor of another shape or kind, or with a value that is not finite."""
    if tensor.shape != shape or tensor.dtype.kind != dtype.kind:
        found = f"{list(tensor.shape)} of {tensor.dtype}"
        raise InputError(f"{path}: the tensor {name} is {found}; expected {list(shape)} of {dtype}")
    if not np.isfinite(tensor).all():
        place = np.argwhere(~np.isfinite(tensor))[0].tolist()
        value = tensor[tuple(place)]
        raise InputError(f"{path}: the tensor {name} has {value} at {place}, which is not finite")


def write(
    path: Path,
    tensors: Tensors,
    description: dict[str, Any],
    before_replacing: Callable[[], None] = lambda: None,
) -> None:
    """Replace the file at `path`; a reader finds the old one or the new one, never a part."""
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    hashes = {name: _tensor_hash(name, tensor) for name, tensor in contiguous.items()}
    text = json.dumps({"format": FORMAT, **description, _HASHES: hashes})
    metadata = {_KEY: text, _CHECKSUM: _hash(text)}
    write_atomically(path, safetensors.numpy.save(contiguous, metadata), before_replacing)


def read(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> tuple[Tensors, dict[str, Any]]:
    """The wanted tensors and the description that `write` wrote, compared with their checksums."""
    with _opened(path) as (file, description, hashes):
        tensors = {}
        for name in filter(wanted, file.keys()):
            tensors[name] = file.get_tensor(name)
            if hashes is not None and hashes[name] != _tensor_hash(name, tensors[name]):
                raise InputError(f"{path} is damaged: the tensor {name} does not have its checksum")
        return tensors, description


def read_description(path: Path) -> dict[str, Any]:
    """The description alone."""
    with _opened(path) as (_, description, _):
        return description


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any], dict[str, str] | None]]:
    """The file, its description, and the checksum of every tensor where the format has them."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no plain file")
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            description = json.loads(metadata[_KEY])
            if not isinstance(description, dict):
                raise ValueError("its description is no object")
            form, hashes = description.get("format"), None
            if isinstance(form, bool) or form not in (1, FORMAT):
                raise InputError(f"{path} has format {form!r}; this version reads formats 1 and {FORMAT}")
            if form == FORMAT or _CHECKSUM in metadata:
                if metadata.get(_CHECKSUM) != _hash(metadata[_KEY]):
                    raise ValueError("its description does not have its checksum")
                hashes = description.pop(_HASHES)
                if hashes.keys() != set(file.keys()):
                    raise ValueError("its tensors are not those that its description lists")
            yield file, description, hashes
    except InputError:
        raise
    except _UNREADABLE as error:
        text = f"{path} is not a file that cwbc saved, or it is damaged: {error}"
        remedy = f"; move {path.parent} away, and the command that trained the run starts over"
        raise InputError(text + (remedy if path.name == CHECKPOINT else "")) from error


def _hash(text: str, tensor: NDArray[Any] | None = None) -> str:
    digest = hashlib.sha256(text.encode())
    if tensor is not None:
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _tensor_hash(name: str, tensor: NDArray[Any]) -> str:
    """A checksum of a tensor with its name, kind and shape."""
    return _hash(f"{name} {tensor.dtype.str} {list(tensor.shape)} ", tensor)
