"""A numpy generator inside kernels."""

import cython as cy

if cy.compiled:
    from cython.cimports.cpython.pycapsule import PyCapsule_GetPointer

__all__ = ["Draws"]


@cy.cclass
class Draws:
    """Draws from a generator, the same numbers in the same order as by its methods.

    One thread at a time may use it.
    """

    def __init__(self, rng: object) -> None:
        self._rng = rng
        if cy.compiled:
            self._bits = cy.cast(
                cy.pointer[bitgen_t],  # noqa: F821  declared in the .pxd file
                PyCapsule_GetPointer(rng.bit_generator.capsule, b"BitGenerator"),
            )

    @cy.cfunc
    @cy.nogil
    @cy.exceptval(check=False)
    def random(self) -> cy.double:
        """Draw a number in [0, 1)."""
        if cy.compiled:
            return self._bits.next_double(self._bits.state)
        else:  # noqa: RET505  what is not compiled must not be looked at
            return self._rng.random()

    @cy.cfunc
    @cy.nogil
    @cy.exceptval(check=False)
    def standard_normal(self) -> cy.double:
        """Draw from N(0, 1)."""
        if cy.compiled:
            return random_standard_normal(self._bits)  # noqa: F821
        else:  # noqa: RET505
            return self._rng.standard_normal()

    @cy.cfunc
    @cy.nogil
    @cy.exceptval(check=False)
    def standard_exponential(self) -> cy.double:
        """Draw from Exp(1)."""
        if cy.compiled:
            return random_standard_exponential(self._bits)  # noqa: F821
        else:  # noqa: RET505
            return self._rng.standard_exponential()

    @cy.cfunc
    @cy.nogil
    @cy.exceptval(check=False)
    def poisson(self, mean: cy.double) -> cy.longlong:
        """Draw from Poisson(mean)."""
        if cy.compiled:
            return random_poisson(self._bits, mean)  # noqa: F821
        else:  # noqa: RET505
            return self._rng.poisson(mean)
