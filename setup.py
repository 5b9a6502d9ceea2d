"""Compile the kernels: every ``kernels*.py`` is Cython in pure Python mode.

On x86-64 a wheel holds them twice, for any such processor and for those with AVX2; an
editable install has those for this machine alone. `kplus.core.compiled` chooses between
them at import, and says how kernels are written. Without a C compiler nothing is built,
and kernels run as the Python that they are.
"""

import copy
import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from numpy._core._multiarray_umath import __cpu_features__
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

UTILITIES = "kplus._cyutility"  # what all compiled files share
DIRECTIVES = {
    "language_level": 3,
    "infer_types": True,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "auto_pickle": False,
    "freethreading_compatible": True,
}
# For the tests: kernels in which an index out of range is an error, in a folder of
# their own.
BOUNDS = os.environ.get("KPLUS_KERNELS") == "bounds"
# One wheel for all of Python from 3.11 on, but for free-threaded ones.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVELS = ["bounds"] if BOUNDS else ["baseline", "avx2"] if IS_X86 else ["baseline"]
"""The folders of compiled kernels."""

# Sums may be added up in any order; NaN and infinity remain what they are. Products are
# not fused with sums, which would change bits and gains nothing.
UNIX = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX += ["-fassociative-math", "-fno-signed-zeros"]
GCC = [
    # Kernels are inlined into their wrapper behind its checks, and would count as cold
    # there and get no SIMD.
    "--param=hot-bb-frequency-fraction=1000000",
    # Sums must not depend on where in memory an array begins.
    "--param=vect-max-peeling-for-alignment=0",
]

NO_COMPILER = """
WARNING: kplus is installed without compiled kernels, as there is no C compiler or there
are no headers of Python. It works, many times slower than it could. Install them
(Debian and Ubuntu: gcc python3-dev; macOS: xcode-select --install; Windows: Visual
Studio Build Tools), then kplus again.
"""


class Build(build_ext):
    """Compiles each kernel for each level, with the flags that the compiler knows."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()

    def run(self) -> None:
        if self.inplace or self.editable_mode:  # for this machine alone
            best = "avx2" if __cpu_features__.get("AVX2") else "baseline"
            here = best if best in LEVELS else LEVELS[0]
            self.extensions = [e for e in self.extensions if e.level in (here, "all")]
        super().run()

    def build_extensions(self) -> None:
        if not self._can_compile():
            self.extensions.clear()
            print(NO_COMPILER, file=sys.stderr)
        super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        paths = [Path(self.get_ext_fullpath(ext.name)) for ext in self.extensions]
        for path in paths:  # into folders that are not there yet
            path.parent.mkdir(parents=True, exist_ok=True)
        super().copy_extensions_to_source()
        for level in {ext.level for ext in self.extensions} - {"all"}:
            compiled = Path("src/kplus/_compiled", level).resolve().rglob("kernels*.*")
            for path in set(compiled).difference(p.resolve() for p in paths):
                path.unlink()  # of a kernel that is no more

    def _can_compile(self) -> bool:
        """Whether there are a C compiler and the headers of Python."""
        with tempfile.TemporaryDirectory() as folder:
            trial = Path(folder) / "trial.c"
            trial.write_text("#include <Python.h>\n")
            try:
                self.compiler.compile([str(trial)], output_dir=folder)
            except (CompileError, OSError):
                return False
        return True

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            flags = ["/O2", *["/arch:AVX2"] * (ext.level == "avx2")]
        else:
            flags = [*UNIX, *["-mavx2"] * (ext.level == "avx2")]
            flags += GCC * ("clang" not in " ".join(self.compiler.compiler_so))
        if BOUNDS:
            flags.append("-O1")
        ext.extra_compile_args = flags
        one = copy.copy(self)  # levels share sources: each has a folder for its objects
        one.build_temp = os.path.join(self.build_temp, ext.level)
        super(Build, one).build_extension(ext)


def extensions() -> list[Extension]:
    """The kernels in C, once for each level."""
    names = {
        ".".join(path.with_suffix("").parts[1:]): str(path)
        for path in sorted(Path("src").rglob("kernels*.py"))
    }
    shared = [] if BOUNDS else [Extension(UTILITIES, ["src/kplus/_cyutility.c"])]
    folder = "build/cython-bounds" if BOUNDS else "build/cython"
    in_c = cythonize(
        [*shared, *(Extension(name, [path]) for name, path in names.items())],
        build_dir=folder,
        compiler_directives=DIRECTIVES | {"boundscheck": BOUNDS},
        shared_utility_qualified_name=None if BOUNDS else UTILITIES,
        nthreads=os.cpu_count() or 1,
        show_all_warnings=False,
    )
    made = []
    for ext in in_c:
        for level in ["all"] if ext.name == UTILITIES else LEVELS:
            place = "kplus" if level == "all" else f"kplus._compiled.{level}"
            one = Extension(
                ext.name.replace("kplus", place, 1),
                ext.sources,
                depends=ext.depends,
                include_dirs=[numpy.get_include()],
                libraries=["npyrandom"] * ext.name.endswith("kernels_random"),
                library_dirs=[str(Path(numpy.__file__).parent / "random" / "lib")],
                define_macros=[("Py_LIMITED_API", "0x030B0000")] if ABI3 else [],
                py_limited_api=ABI3,
            )
            one.level = level
            made.append(one)
    return made


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
)
