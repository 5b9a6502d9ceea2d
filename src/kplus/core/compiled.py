"""Kernels: how they are written, and which compiled form of them runs.

A kernel is an inner loop that numpy and BLAS cannot express. Kernels stand in the
``kernels*.py`` files of their method, in the pure Python mode of Cython: Python that
also runs as it is. ``pip install`` compiles them, on x86-64 for processors with AVX2
and for any other, and `level` chooses.

- A function that Python calls is a ``def`` with typed arguments: ``cy.const[...]`` for
  arrays that are only read (those of users may be read-only), ``[:, ::1]`` for
  contiguous ones. It allocates with numpy, then does its work under ``with cy.nogil:``.
- What kernels call has three decorators, ``@cy.cfunc``, ``@cy.nogil`` and
  ``@cy.exceptval(check=False)``, and a return type. Tests see those with ``@cy.ccall``
  instead of ``@cy.cfunc`` only.
- Inside loops index whole arrays, ``A[k, d]``; a slice costs as much as ten additions.
  Give sums a type, ``total: cy.double = 0.0``: the compiler finds most other types.
- A loop over long arrays writes one of them, and reads what stays the same from a
  variable: GCC gives up SIMD where more than ten pairs of arrays might overlap.
- Many arguments go into ``@cy.cclass`` dataclasses, made once per pass.
- ``exp`` and the like come from libc if ``cy.compiled``, from numpy otherwise.
- A kernel that other files call is declared in a ``.pxd`` file beside it, and they
  import it from ``cython.cimports.kplus``, which uncompiled is kplus itself.

Sums over a loop may be added up in any order (``-fassociative-math``), the same one
whenever the same code runs. NaN is never compiled away: a sum may be asked whether it
is finite. Docstrings name the equation or algorithm that a kernel computes. MAD-Bayes
is Broderick, Kulis and Jordan (2013), Memoized is Hughes and Sudderth (2013), CRAFT is
Garg, Rudin and Jaakkola (2016), MEIBP is Reed and Ghahramani (2013).
"""

import os
import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["find_compiled_kernels", "level"]

_FOLDER = Path(__file__).parents[1] / "_compiled"


@cache
def level() -> str:
    """Which kernels run: ``"avx2"``, ``"baseline"``, or ``"python"``, uncompiled.

    The environment variable ``KPLUS_KERNELS`` may name another than the best;
    ``python`` is for coverage and debuggers, and ``bounds`` for tests.
    """
    from numpy._core._multiarray_umath import __cpu_features__

    best = ["avx2"] * __cpu_features__.get("AVX2", False) + ["baseline"]
    wanted = os.environ.get("KPLUS_KERNELS") or next(
        (name for name in best if (_FOLDER / name).is_dir()), ""
    )
    if not wanted:
        warnings.warn(
            "kplus was installed without a C compiler: its kernels run as plain "
            "Python, many times slower than they could. Install a compiler "
            "(gcc, clang, Visual Studio) and then kplus again.",
            RuntimeWarning,
            stacklevel=2,
        )
    elif wanted != "python" and not (_FOLDER / wanted).is_dir():
        raise ImportError(
            f"KPLUS_KERNELS is {wanted!r}, and no such kernels were built in {_FOLDER}."
        )
    if wanted in ("", "python"):  # C does not warn of what a division by 0 gives
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"kplus\..*kernels"
        )
        _Cimports.install()
    return wanted or "python"


class _CompiledKernels:
    """Finds compiled kernels under the names of the modules that they come from."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not (name.startswith("kplus.") and ".kernels" in name):
            return None
        if level() == "python":
            return None
        _, *folders, last = name.split(".")
        place = _FOLDER.joinpath(level(), *folders)
        files = (place / f"{last}{suffix}" for suffix in EXTENSION_SUFFIXES)
        file = next(filter(Path.is_file, files), None)
        return None if file is None else spec_from_file_location(name, file)


class _Cimports:
    """Finds kplus under ``cython.cimports``, for kernels that run uncompiled."""

    PREFIX = "cython.cimports."

    @classmethod
    def install(cls) -> None:
        import_module("cython")
        # Cython's stand-in for a package lacks what importlib asks of one.
        sys.modules["cython.cimports"].__spec__ = None
        sys.meta_path.insert(0, cls)

    @classmethod
    def find_spec(
        cls, name: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        loader: Any = cls
        ours = f"{name}.".startswith(f"{cls.PREFIX}kplus.")
        return ModuleSpec(name, loader, is_package=True) if ours else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None  # an empty one, until exec_module puts the other in its place

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        name = module.__name__
        sys.modules[name] = import_module(name.removeprefix(cls.PREFIX))


def find_compiled_kernels() -> None:
    """Let imports find compiled kernels; called once, when kplus is imported."""
    if _CompiledKernels not in sys.meta_path:
        sys.meta_path.insert(0, _CompiledKernels)
