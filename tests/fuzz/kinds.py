"""Small valid files of each kind, who reads them, and which errors may come out."""

import gzip
import io
import json
import math
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kplus
from fuzz.mutations import mutate
from kplus.core.decoding import decode
from kplus.core.encoding import Encoder
from kplus.core.errors import CheckpointError, DataError, ModelFormatError
from kplus.core.reading import n_blocks
from kplus.core.storable import RECORDS_AND_STATES
from kplus.data.open import Coder, open_numbers
from kplus.engine.state_store import read_states, write_states
from kplus.persist import checkpoint

X = np.random.default_rng(0).normal(size=(40, 3)).round(3)
X[20:] += 9.0
WORDS = np.array(["red", "green", "blå", "red,\n blue"])[np.arange(40) % 4]
_MOST_BLOCKS = 20


@dataclass(frozen=True)
class Kind:
    """Samples are files by their names; a folder of files is one sample, too.

    `read` is given the path of what was hurt; only `errors` may come out of it.
    """

    samples: list[dict[str, bytes]]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]

    def hurt(self, rng: random.Random) -> dict[str, bytes]:
        """A sample of which a file was hurt, or lost."""
        sample = dict(rng.choice(self.samples))
        name = rng.choice(list(sample))
        others = [content for other in self.samples for content in other.values()]
        sample[name] = mutate(sample[name], rng, others)
        if rng.randrange(200) == 0 and len(sample) > 1:
            del sample[name]
        return sample

    def put(self, folder: Path, sample: dict[str, bytes]) -> Path:
        """Write a sample to a new folder; return what to read."""
        for name, content in sample.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / next(iter(sample)).split("/")[0]


def in_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder, as a sample."""
    return {
        str(path.relative_to(folder.parent)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# ------------------------------------------------------------------- our own


def models(folder: Path) -> Kind:
    frame = {"a": X[:, 0], "b": X[:, 1]}
    fits = [
        kplus.DPMeans(penalty=20.0, random_state=0).fit(X),
        kplus.DPMixture(random_state=0).fit(X),
        kplus.BPMeans(0.5, max_components=2, random_state=0).fit(X),
    ]
    try:
        import pandas as pd

        frame = pd.DataFrame(frame | {"c": WORDS})
        fits.append(kplus.CRAFT(n_clusters=2, random_state=0).fit(frame))
    except ImportError:
        pass
    samples = []
    for number, model in enumerate(fits):
        path = folder / f"{number}.npz"
        kplus.save(model, path)
        samples.append({"model.npz": path.read_bytes()})

    def read(path):
        kplus.inspect(path)
        kplus.load(path)

    return Kind(samples, read, (ModelFormatError, FileNotFoundError))


class _Crash(Exception):
    pass


def _interrupted(model, folder):
    """A checkpoint as a crash leaves it behind."""
    write, count = checkpoint.Checkpoint.write, 0
    seconds, share = checkpoint.SECONDS, checkpoint.SHARE

    def writing(self, *arguments):
        nonlocal count
        write(self, *arguments)
        count += 1
        if count == 2:
            raise _Crash

    checkpoint.Checkpoint.write = writing
    checkpoint.SECONDS, checkpoint.SHARE = 0.0, 0
    try:
        model.fit(X, checkpoint=folder)
    except _Crash:
        return in_folder(folder)
    finally:
        checkpoint.Checkpoint.write = write
        checkpoint.SECONDS, checkpoint.SHARE = seconds, share
    raise AssertionError("the fit ended too early")


def checkpoints(folder: Path) -> Kind:
    models = [
        kplus.DPMeans(penalty=1.0, batch_size=10, random_state=0),
        kplus.DPMixture(batch_size=10, random_state=0),
    ]
    samples = [
        _interrupted(model, folder / f"here-{i}") for i, model in enumerate(models)
    ]
    turn = 0

    def read(path):
        nonlocal turn
        turn += 1
        found = open_checkpoint(path)
        if turn % 25 == 0:
            getattr(kplus, found.fit["class"]).resume(path, X)

    return Kind(samples, read, (CheckpointError, ModelFormatError, FileNotFoundError))


def open_checkpoint(path: Path) -> checkpoint.Checkpoint:
    found = checkpoint.Checkpoint.open(path)
    found.restore()
    found.part(0)
    return found


def forged_checkpoints(folder: Path) -> Kind:
    """Checkpoints whose digests are right and whose outline is not.

    They are opened only: nothing protects a fit from states that were made up.
    """
    base = checkpoints(folder)
    outlines = []
    for sample in base.samples:
        for name, content in sample.items():
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                manifest = json.loads(archive.read("manifest.json"))
            outlines.append({f"{name}.json": json.dumps(manifest["outline"]).encode()})
    whole = {
        name: content for sample in base.samples for name, content in sample.items()
    }

    def read(path):
        name = path.name
        for child in path.rglob("*.json"):
            name = str(child.relative_to(path.parent)).removesuffix(".json")
            outline = child.read_bytes()
            sample = next(s for s in base.samples if name in s)
        shutil.rmtree(path)
        for other, content in sample.items():
            target = path.parent / other
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        with np.load(io.BytesIO(whole[name])) as arrays:
            changed = dict(arrays)
        changed.pop("manifest.json", None)
        (path.parent / name).unlink()
        manifest = {"outline": _parsed(outline)}
        checkpoint.write_archive(path.parent / name, manifest, changed, checkpoint.KIND)
        open_checkpoint(path)

    return Kind(outlines, read, base.errors)


def _parsed(outline: bytes) -> Any:
    """JSON, or what stands for an outline that is none."""
    try:
        return json.loads(outline, parse_constant=str, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError("no JSON") from error


def _finite(text: str) -> float:
    """A number that JSON can hold again; 1e999 is none."""
    if not math.isfinite(float(text)):
        raise ValueError(text)
    return float(text)


def packed(folder: Path) -> Kind:
    values = [
        {"a": np.arange(5), "b": [1.5, None, True, "x", (2, range(3))]},
        [np.zeros((2, 3), np.float32, order="F"), np.float64(2.5), np.array(3)],
        np.array([(1, 2.5)], dtype=[("n", "i8"), ("x", "f8")]),
        _kept(),
    ]
    samples = []
    for value in values:
        encoder = Encoder("a file", RECORDS_AND_STATES)
        outline = json.dumps(encoder.encode(value, "value")).encode()
        samples.append({"packed/outline": outline} | _raw(encoder.arrays))

    def read(path):
        arrays = {}
        for one in path.glob("*.raw"):
            kind = one.name.removesuffix(".raw")
            size = np.dtype(kind).itemsize
            content = one.read_bytes()
            arrays[kind] = np.frombuffer(content[: len(content) // size * size], kind)
        outline = _parsed((path / "outline").read_bytes())
        decode(outline, arrays, RECORDS_AND_STATES)

    return Kind(samples, read, (ModelFormatError, FileNotFoundError))


def _raw(arrays):
    return {f"packed/{kind}.raw": array.tobytes() for kind, array in arrays.items()}


def _kept():
    from kplus.core.journal import RunningLoop
    from kplus.engine.engine import State

    state = State([[np.arange(3)]], [(0, 0), (-1, 0)], [0, 1], [(np.arange(2), 2)])
    return {1: RunningLoop(state, [{"state": 2**100, "spawned": 0}])}


def states(folder: Path) -> Kind:
    values = [
        [(np.arange(9), np.linspace(0, 1, 7)), None],
        [_kept()[1].state],
    ]
    samples = [
        {"state.npz": (folder / write_states(folder, value)).read_bytes()}
        for value in values
    ]
    return Kind(samples, read_states, (DataError,))


# -------------------------------------------------------------------- tables


def read_table(path: Path) -> None:
    """Read a table as mixtures and CRAFT do, and if it has numbers only, as others."""
    opened, coding = Coder(block_rows=16).open(path)
    _read_blocks(opened)
    if coding is None:
        _read_blocks(open_numbers(path, 16))


def _read_blocks(blocks: Any) -> None:
    for index in range(min(n_blocks(blocks), _MOST_BLOCKS)):
        blocks.read(index)


def _tables(samples):
    return Kind(samples, read_table, (DataError, FileNotFoundError))


def npy(folder: Path) -> Kind:
    samples = []
    for rows in (X, X.astype("f4"), np.asfortranarray(X), X > 0, X.astype(">i2")):
        file = io.BytesIO()
        np.save(file, rows)
        samples.append({"X.npy": file.getvalue()})
    file = io.BytesIO()
    np.lib.format.write_array(file, X, version=(3, 0))
    return _tables([*samples, {"X.npy": file.getvalue()}])


def csv(folder: Path) -> Kind:
    lines = ["a,b,word,yes"]
    for i, row in enumerate(X):
        lines.append(f'{row[0]},{i},"{WORDS[i]}",{i % 2 == 0}')
    text = "\n".join(lines).encode()
    numbers = b"a,b\r\n" + b"\r\n".join(b"%d,%.2f" % (i, i / 3) for i in range(30))
    return _tables(
        [
            {"X.csv": text},
            {"X.csv": numbers},
            {"X.csv": b"\xef\xbb\xbf" + numbers},
            {"X.csv.gz": gzip.compress(text, mtime=0)},
        ]
    )


def long_csv(folder: Path) -> Kind:
    """The same, copied to an Arrow file first."""
    from kplus.data import csv as module

    def read(path):
        small, module._SMALL_BYTES = module._SMALL_BYTES, 0
        try:
            read_table(path)
        finally:
            module._SMALL_BYTES = small

    return Kind(csv(folder).samples, read, (DataError, FileNotFoundError))


def _arrow_tables():
    import pyarrow as pa

    numbers = {"a": X[:, 0], "b": X[:, 1].astype("f4"), "n": np.arange(40)}
    words = pa.array(WORDS.tolist())
    mixed = numbers | {"word": words, "coded": words.dictionary_encode()}
    gaps = {"a": pa.array([None, 1.5] * 20), "yes": pa.array([True, None] * 20)}
    note = json.dumps({"index_columns": ["n"], "columns": []}).encode()
    tables = [pa.table(table) for table in (numbers, mixed, gaps)]
    return [*tables, tables[0].replace_schema_metadata({b"pandas": note})]


def parquet(folder: Path) -> Kind:
    import pyarrow.parquet as pq

    samples = []
    for table in _arrow_tables():
        for compression in ("none", "snappy", "zstd"):
            file = io.BytesIO()
            pq.write_table(table, file, row_group_size=16, compression=compression)
            samples.append({"X.parquet": file.getvalue()})
    return _tables(samples)


def arrow(folder: Path) -> Kind:
    import pyarrow.ipc as ipc

    samples = []
    for table in _arrow_tables():
        for compression in (None, "lz4", "zstd"):
            file = io.BytesIO()
            options = ipc.IpcWriteOptions(
                compression=compression, unify_dictionaries=True
            )
            with ipc.new_file(file, table.schema, options=options) as out:
                out.write_table(table, max_chunksize=16)
            samples.append({"X.arrow": file.getvalue()})
    return _tables(samples)


def zarr(folder: Path) -> Kind:
    import zarr

    samples = []
    for number, options in enumerate(
        [{}, {"zarr_format": 2}, {"shards": (32, 3)}, {"compressors": None}]
    ):
        path = folder / str(number) / "X.zarr"
        array = zarr.create_array(
            store=str(path), shape=X.shape, dtype=X.dtype, chunks=(16, 3), **options
        )
        array[...] = X
        samples.append(in_folder(path))
    return _tables(samples)


# Name: who makes it, and its share of all mutations.
KINDS: dict[str, tuple[Callable[[Path], Kind], float]] = {
    "models": (models, 0.14),
    "checkpoints": (checkpoints, 0.10),
    "forged checkpoints": (forged_checkpoints, 0.03),
    "packed": (packed, 0.20),
    "states": (states, 0.12),
    "npy": (npy, 0.12),
    "csv": (csv, 0.09),
    "long csv": (long_csv, 0.03),
    "parquet": (parquet, 0.07),
    "arrow": (arrow, 0.07),
    "zarr": (zarr, 0.03),
}
