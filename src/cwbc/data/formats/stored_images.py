"""Images of an HDF5 file, whose compressed chunks are decompressed side by side."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cwbc.core.trajectories import images_together

_THREADS = 8  # at most: each has a chunk in memory
Images = NDArray[np.uint8]  # [step, height, width] or [step, height, width, channel]


class StoredImages:
    """An array of images in an open HDF5 file, read when it is needed."""

    def __init__(self, array: h5py.Dataset) -> None:
        self._array = array
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype

    @property
    def nbytes(self) -> int:
        """The size of the images, decompressed."""
        return int(self._array.nbytes)

    def __getitem__(self, everything: tuple[()]) -> Images:
        images = np.empty(self.shape, np.uint8)

        def store(first: int, some: Images) -> None:
            images[first : first + len(some)] = some

        self.read(store)
        return images

    def read(self, receive: Callable[[int, Images], None]) -> None:
        """Call `receive` with all images, some consecutive ones at a time, and the row of their first.

        It is called by several threads, in any order.
        """
        chunked = self._is_chunked()
        size = self._array.chunks[0] if chunked else images_together(self._array[:1].nbytes)
        get = self._chunk if chunked else lambda first: self._array[first : first + size]
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            for _ in pool.map(lambda first: receive(first, get(first)), range(0, len(self._array), size)):
                pass

    def _is_chunked(self) -> bool:
        """Whether the chunks are whole images, compressed as `hdf5.write` does."""
        array, chunks = self._array, self._array.chunks
        filters = array.id.get_create_plist().get_nfilters()
        whole = chunks is not None and chunks[1:] == array.shape[1:]
        return (
            whole
            and filters == 1
            and array.compression == "gzip"
            and array.id.get_num_chunks() == -(-len(array) // chunks[0])
        )

    def _chunk(self, first: int) -> Images:
        """The images of one chunk; HDF5 serves one thread at a time, decompression does not wait."""
        shape = self._array.chunks
        skipped, stored = self._array.id.read_direct_chunk((first,) + (0,) * (len(shape) - 1))
        size = int(np.prod(shape))
        # What compression would have made larger is stored as it is.
        content = stored if skipped else zlib.decompressobj().decompress(stored, size + 1)
        if len(content) != size:
            raise ValueError(f"the chunk of image {first} does not have its {size} bytes")
        images: NDArray[Any] = np.frombuffer(content, np.uint8).reshape(shape)
        return images[: len(self._array) - first]
