"""Outputs of a regression that are problems of their own, and their images."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from marginsvm._typing import Array


class Outputs:
    """A problem whose scores may have several outputs."""

    _output_axis: ClassVar[int]  # of images

    @abstractmethod
    def alone(self, j: int) -> Any:
        """The problem of one output, in the same units."""

    def of_output(self, image: Array, j: int) -> Array:
        """An image with 0 in place of what does not belong to one output."""
        only = np.zeros_like(image)
        np.moveaxis(only, self._output_axis, 0)[j] = np.moveaxis(image, self._output_axis, 0)[j]
        return only

    def together(self, images: list[Array]) -> Array:
        """The image of all outputs, from those of each."""
        return np.stack(images, self._output_axis)
