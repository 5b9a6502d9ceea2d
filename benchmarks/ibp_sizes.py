"""How much data and how many runs; one set to measure, one to try the code."""

from dataclasses import dataclass

Shape = tuple[int, int, int]  # rows, columns, components


@dataclass(frozen=True)
class Sizes:
    """Sizes of the cases of ``ibp.py``; boxes are CPU seconds that a run may take."""

    synthetic: tuple[Shape, ...]
    synthetic_seeds: int
    curves: tuple[Shape, ...]
    curve_starts: tuple[int, ...]
    curve_boxes: tuple[float, ...]
    large_rows: tuple[int, ...]
    large_columns: int
    large_components: int
    real_rows: int | None
    real_components: tuple[int, ...]
    real_box: float
    full_components: int
    full_box: float
    sweeps: int
    starts: int
    step_starts: int
    masses: tuple[float, ...]
    factor_variances: tuple[float, ...]
    solver_components: tuple[int, ...]
    solver_sets: int
    solver_rows: int  # to optimise, for each component and set
    flip_components: tuple[int, ...]
    flip_rows: int
    cost: Shape
    cost_factors: tuple[int, ...]
    cost_passes: tuple[int, int]
    cost_repeats: int
    plain: Shape
    slow: Shape  # of INMF, and its largest
    slow_large: Shape
    slow_beam_rows: int
    slow_components: tuple[int, ...]


FULL = Sizes(
    synthetic=((500, 500, 20), (5_000, 500, 30)),
    synthetic_seeds=10,
    curves=((500, 500, 20), (5_000, 500, 30)),
    curve_starts=(2, 1),
    curve_boxes=(30.0, 60.0),
    large_rows=(12_500, 25_000, 50_000, 100_000),
    large_columns=1_000,
    large_components=50,
    real_rows=None,
    real_components=(10, 25, 50),
    real_box=18.0,
    full_components=25,
    full_box=120.0,
    sweeps=1_000,
    starts=1_000,
    step_starts=300,
    masses=(0.01, 0.1, 1.0),
    factor_variances=(0.1, 1.0, 10.0),
    solver_components=tuple(range(2, 13)),
    solver_sets=10,
    solver_rows=1_000,
    flip_components=(5, 10, 20, 40, 80),
    flip_rows=1_000,
    cost=(2_000, 200, 16),
    cost_factors=(1, 2, 4),
    cost_passes=(3, 9),
    cost_repeats=3,
    plain=(500, 500, 20),
    slow=(200, 100, 8),
    slow_large=(1_000, 100, 50),
    slow_beam_rows=100,
    slow_components=(8, 10, 12, 14),
)
QUICK = Sizes(
    synthetic=((60, 40, 3),),
    synthetic_seeds=2,
    curves=((60, 40, 3),),
    curve_starts=(1,),
    curve_boxes=(0.05,),
    large_rows=(200, 400),
    large_columns=30,
    large_components=4,
    real_rows=400,
    real_components=(3,),
    real_box=0.02,
    full_components=3,
    full_box=0.02,
    sweeps=12,
    starts=3,
    step_starts=2,
    masses=(1.0,),
    factor_variances=(1.0,),
    solver_components=(2, 3),
    solver_sets=1,
    solver_rows=20,
    flip_components=(3, 6),
    flip_rows=60,
    cost=(60, 20, 3),
    cost_factors=(1, 2),
    cost_passes=(1, 3),
    cost_repeats=1,
    plain=(60, 40, 3),
    slow=(40, 20, 3),
    slow_large=(60, 20, 5),
    slow_beam_rows=20,
    slow_components=(2, 4),
)
