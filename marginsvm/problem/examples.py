"""What a program asks of its examples: products, bounds on their rounding, and publication.

Predictors w have the shape (k, width): with features these are coordinates, with a kernel
coefficients of the examples. Coefficients V of the examples have the shape (n, k). In these units
the longest example has norm 1.

================================  =======  ===========  ==========================================
implemented by                    numbers  is_kernel    for
================================  =======  ===========  ==========================================
``problem.design.Design``         float64  False        solvers, fits and their certificates
``problem.gram.Gram``             float64  True         the same
``certificate.ExactFeatures``     Fraction False        checks of a certificate
``certificate.KernelMatrix``      both     True         checks of a certificate
================================  =======  ===========  ==========================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from marginsvm._typing import Array, KernelFunction, Stored, Values
from marginsvm.problem.matrix import Matrix


class Examples(ABC):
    """Products, for the two values of a program; what rounds has its bounds on rounding.

    Attributes
    ----------
    is_kernel : bool
    n : int
    d : int or None
        Coordinates, a constant feature among them; None: a kernel.
    radius : number
        Norm of the longest example in the user's units, in which all these numbers are 1.
    rounding : float
        Relative error of the numbers that products are computed with.
    additions : tuple of int
        Largest numbers of additions that round a term of ``scores``, and of ``combine`` (with a
        kernel, of ``inner``).
    """

    is_kernel: ClassVar[bool]
    n: int
    d: int | None
    radius: Values

    @abstractmethod
    def scores(self, w: Array) -> Array:
        """Products with all examples, of shape (n, k)."""

    @abstractmethod
    def combine(self, V: Array) -> Array:
        """``V'X``, of shape (k, width)."""

    @abstractmethod
    def inner(self, w: Array, u: Array) -> Values:
        """Inner product of two predictors, summed over their scores."""

    @property
    @abstractmethod
    def squared_norms(self) -> Array:
        """Squared norms of the examples."""

    def squared_dual_norms(self, p: float) -> Array:
        """Squared norms of the examples in the dual of the p-norm."""
        raise NotImplementedError("kernels have the Euclidean norm")

    # Bounds on rounding; these are those of exact products.

    @property
    def rounding(self) -> float:
        return 0.0

    @property
    def additions(self) -> tuple[int, int]:
        return 0, 0

    def bounded_scores(self, w: Array) -> tuple[Array, Array]:
        """``scores``, and upper bounds on the sums of absolute values of their terms."""
        S = self.scores(w)
        return S, 0 * S

    def squared_magnitude(self, w: Array) -> float:
        """Upper bound on the sum of absolute values of the terms of ``inner(w, w)``."""
        return 0.0

    def bounded_combine(self, V: Array) -> tuple[Array, Array]:
        """``combine``, and upper bounds on the sums of absolute values of its terms.

        Or on the norms of the rows of these sums, in the norm of images for any p.
        """
        w = self.combine(V)
        return w, 0 * w

    def combine_extended(self, V: Array) -> tuple[Array, Array] | None:
        """``combine`` in extended precision, and the error of each entry; None: not here."""
        return None


class FloatExamples(Examples):
    """Examples of a fit: also some of them, their inner products, and published predictors.

    Attributes
    ----------
    X : Matrix, or what a kernel takes
    sparse : bool
        Whether the features are a CSR matrix.
    constant : float
        A constant feature, in the units of X; or 0.
    kernel : Kernel, callable or None
        None: of features, or of a given kernel matrix.
    """

    X: Matrix | Stored
    sparse: bool
    constant: float
    kernel: KernelFunction | None = None

    @abstractmethod
    def scores(self, w: Array, *, precise: bool = True) -> Array: ...

    @abstractmethod
    def in_units(self, radius: float) -> Self:
        """The examples in units of another radius."""

    @abstractmethod
    def take(self, index: Array) -> Self:
        """Some of the examples."""

    @abstractmethod
    def gram(self, i: Array, j: Array) -> Array:
        """Inner products of the examples i with the examples j."""

    @abstractmethod
    def columns(self, index: Array) -> Array:
        """Inner products of some examples with all, of shape (len(index), n)."""

    # Publication.

    @abstractmethod
    def published(self, w: Array) -> tuple[Array, Values]:
        """The predictor for x as given, and the offset subtracted from its scores."""

    @abstractmethod
    def stated(
        self, coef: Array, intercept: Array, origin: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """A published predictor in units of the examples, and its intercepts about the centre."""

    @abstractmethod
    def given(self, index: Array) -> tuple[Stored, Array, bool]:
        """Some examples as they were given, the factors of their dual variables, and whether
        predictors have an intercept besides these features.
        """
