"""Where Minari keeps its datasets, and what they are called; needs no package of Minari's."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from cwbc.errors import InputError

FORMAT = "a Minari dataset"
ROOT = "MINARI_DATASETS_PATH"  # Minari's environment variable for where its datasets lie
LOT = 1 << 15  # rows; of a longer episode, Minari's arrow storage writes all and reads the first so many

_ID = re.compile(r"(?![-\w]/[^/]*$)([-\w]+/)*[-\w]+-v\d+")  # Minari takes no namespace of one letter


def is_dataset(path: Path) -> bool:
    """Whether a folder has Minari's layout."""
    return os.path.isfile(path / "data" / "metadata.json")  # False also where the name cannot be a file's


def local(name: str) -> Path | None:
    """The folder of the dataset with this id in Minari's own place, if it is there."""
    folder = root_folder() / name
    return folder if _ID.fullmatch(name) and is_dataset(folder) else None


def local_names() -> list[str]:
    """The ids of all datasets in Minari's own place."""
    names = (path.relative_to(root_folder()).as_posix() for path in datasets_below(root_folder()))
    return sorted(name for name in names if _ID.fullmatch(name))


def is_id(name: str) -> bool:
    """Whether a dataset could be called so."""
    return _ID.fullmatch(name) is not None


def told(name: str) -> tuple[int | None, int | None]:
    """Episodes and steps of a local dataset, as it says itself."""
    try:
        metadata = json.loads((root_folder() / name / "data" / "metadata.json").read_bytes())
        counts = (metadata.get("total_episodes"), metadata.get("total_steps"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None, None
    return counts if all(isinstance(count, int) for count in counts) else (None, None)


def datasets_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The folders in Minari's layout in a folder, however deep."""
    real = folder.resolve()
    if real in above:  # a link that goes round
        return
    try:
        inner = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError:  # not there, or not for us to see
        return
    for path in inner:
        if is_dataset(path):
            yield path
        else:
            yield from datasets_below(path, above | {real})


def root_folder() -> Path:
    """Minari's own place."""
    return Path(os.environ.get(ROOT) or Path.home() / ".minari" / "datasets")


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Minari warns of every field that is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_id(name: str) -> None:
    """Refuse what cannot be an id."""
    if _ID.fullmatch(name):
        return
    parts = [part for part in re.sub(r"[^-\w/]+", "-", name).split("/") if part.strip("-")]
    likely = "/".join(part.strip("-") for part in parts)
    likely = likely if re.search(r"-v\d+$", likely) else f"{likely}-v0"
    raise InputError(
        f"{name!r} is not an id of a Minari dataset; one is like "
        f"{likely if _ID.fullmatch(likely) else 'namespace/name-v0'!r}"
    )


def check_place(dataset_id: str, overwrite: bool) -> None:
    """Refuse an id that is taken, or whose place is."""
    root, folder = root_folder(), root_folder() / dataset_id
    if is_dataset(folder) and not overwrite:
        raise InputError(f"there is a Minari dataset {dataset_id} already; --overwrite replaces it")
    if folder.exists() and not is_dataset(folder):
        raise InputError(f"{folder} is not a Minari dataset; remove it, or choose another id")
    for parent in list(folder.relative_to(root).parents)[:-1]:
        if is_dataset(root / parent):
            raise InputError(f"{parent.as_posix()} is a Minari dataset; {dataset_id} cannot lie below it")


def put(written: Path, folder: Path, replaced: Path) -> None:
    """Move a whole dataset to its place, and one that is there out of the way."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        os.replace(folder, replaced)
    try:
        os.replace(written, folder)
    except BaseException:
        if replaced.exists():
            os.replace(replaced, folder)
        raise
