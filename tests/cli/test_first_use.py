"""Files that people really have, without reading anything first.

The commands fit with few passes: what is tested is how tables are read.
"""

import gzip
import json

import numpy as np
import polars as pl
import pytest

import kplus as library

N = 60
RNG = np.random.default_rng(0)
GROUP = np.arange(N) % 2
SIZE = np.round(9.0 * GROUP + RNG.normal(size=N), 2).tolist()
FAST = ["--no-report", "--clusters", 2, "--stability", 0]


def english(numbers, unit=""):
    return [f"{unit}{x:,.2f}" for x in numbers]


def german(numbers):
    return [x.translate(str.maketrans(",.", ".,")) for x in english(numbers)]


MONEY = (1000 * (3 + GROUP) + 50 * RNG.normal(size=N)).tolist()
CUSTOMERS = {
    "customer_id": [f"C{i:05d}" for i in range(N)],
    "signup": [f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2024" for i in range(N)],
    "last login": [f"2026-01-{i % 28 + 1:02d}T08:{i:02d}:00+02:00" for i in range(N)],
    "revenue": english(MONEY, "€"),
    "discount": [f"{5 + 5 * g:.1f}%" for g in GROUP + RNG.normal(size=N) / 9],
    "newsletter": [["yes", "no"][i % 3 % 2] for i in range(N)],
    "segment": [["web", "shop"][g] for g in GROUP],
    "postcode": [f"{i * 997 % 99999:05d}" for i in range(N)],
    "visits": RNG.poisson(5 + 20 * GROUP).tolist(),
    "number_of_rooms": [i % 6 + 1 for i in range(N)],
    "country": ["DE"] * N,
    "notes": [
        f"Called about invoice {i}, wants to have it sent again" for i in range(N)
    ],
    "fax": [None] * N,
}
LEFT_OUT = {
    "customer_id": "ids", "signup": "dates", "last login": "dates", "postcode": "ids",
    "country": "constant", "notes": "free text", "fax": "empty",
}  # fmt: skip


def write(path, columns, **options):
    pl.DataFrame(columns, strict=False).write_csv(path, **options)
    return path


@pytest.fixture
def customers(tmp_path):
    return write(tmp_path / "customers.csv", CUSTOMERS)


def fit(kplus, path, out, *words):
    done = kplus("fit", path, "-o", out, *FAST, *words)
    assert done.code == 0, done.err
    return done


def labels(out):
    return pl.read_csv(out / "labels.csv")["cluster"].to_list()


def test_a_customer_table(kplus, customers, out):
    done = fit(kplus, customers, out)
    notes = done.err.splitlines()
    assert notes[:3] == [
        f"customers.csv: {N} rows, 6 columns of numbers (4) and categories used.",
        "Left out: ids: customer_id, postcode; dates: signup, last login; free text: "
        "notes; constant: country; empty: fax. --keep COL uses a column all the same; "
        "--dates parts or --dates age uses dates.",
        "Read as numbers: revenue (amounts in €), discount (percent). --categorical "
        "COL takes a column as categories.",
    ]
    assert len(set(zip(labels(out), GROUP.tolist(), strict=True))) == 2
    model = library.load(out / "model.kplus")
    assert model.reading_.left_out == LEFT_OUT
    told = kplus("inspect", out / "model.kplus")
    for words in ("customer_id, postcode", "revenue (amounts in €)", "set apart by"):
        assert words in told.out


@pytest.mark.parametrize("kind", ["xlsx", "jsonl", "json", "parquet", "tsv", "txt.gz"])
def test_other_kinds_of_files_are_read_the_same(kplus, customers, out, tmp_path, kind):
    fit(kplus, customers, out)
    path = tmp_path / f"other.{kind}"
    frame = pl.DataFrame(CUSTOMERS)
    rows = frame.rows(named=True)
    if kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in [frame.columns, *frame.rows()]:
            book.active.append(row)
        book.save(path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "parquet":
        frame.write_parquet(path)
    else:
        text = frame.write_csv(separator="\t").encode()
        path.write_bytes(gzip.compress(text) if kind == "txt.gz" else text)
    done = kplus("predict", out / "model.kplus", path)
    assert done.out == (out / "labels.csv").read_text()
    fit(kplus, path, tmp_path / "other")
    assert labels(tmp_path / "other") == labels(out)


def test_dates_as_parts_and_ages(kplus, customers, out):
    for how, names in {
        "parts": ["signup month", "signup weekday", "last login hour (sin)"],
        "age": ["signup age (days)", "last login age (days)"],
    }.items():
        done = fit(kplus, customers, out, "--dates", how, "--force")
        assert f"dates as {how.rstrip('s')}s: signup, last login" in done.err
        model = library.load(out / "model.kplus")
        assert set(names) <= set(model.feature_names_in_)
        again = kplus("predict", out / "model.kplus", customers)
        assert again.out == (out / "labels.csv").read_text()
    kplus("fit", customers, "--dates", "part").refuses(
        "--dates is ignore, parts or age"
    )


def test_keeping_columns(kplus, customers, out):
    fit(kplus, customers, out, "--keep", "country", "--keep", "signup")
    names = library.load(out / "model.kplus").feature_names_in_.tolist()
    assert "country" in names
    assert "signup month" in names
    kplus("fit", customers, "--keep", "countri").refuses("'countri'", "mean 'country'")


def test_a_european_spreadsheet(kplus, tmp_path, out):
    columns = {"größe": german(SIZE), "umsatz": german(MONEY)}
    text = pl.DataFrame(columns).write_csv(separator=";")
    for encoding, words in {
        "cp1252": "CP1252 letters",
        "utf-16": "UTF-16 letters",
    }.items():
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.encode(encoding))
        done = fit(kplus, path, out, "--force")
        assert f"semicolons between columns, decimal commas, {words}." in done.err
        portrait = library.load(out / "model.kplus").describe()
        assert "größe" in str(portrait)
        assert len(set(zip(labels(out), GROUP.tolist(), strict=True))) == 2


def odd_numbers():
    cells = list(map(str, SIZE))
    cells[3], cells[9], cells[10], cells[20], cells[21] = (
        "n/a",
        "unknown",
        "-",
        "",
        "NA",
    )
    return cells


def test_numbers_with_odd_cells(kplus, tmp_path, out):
    columns = {"size": odd_numbers(), "money": MONEY}
    done = fit(kplus, write(tmp_path / "odd.csv", columns), out, "--json")
    assert (
        "Read as numbers: size (55 of 58 cells, the others count as missing: '-', "
        "'n/a', 'unknown'). --categorical COL takes a column as categories."
    ) in done.err
    assert json.loads(done.out)["odd_cells"] == {"size": 3}


def test_predictions_with_odd_cells(kplus, tmp_path, out):
    fit(kplus, write(tmp_path / "good.csv", {"size": SIZE, "money": MONEY}), out)
    odd = write(tmp_path / "odd.csv", {"size": odd_numbers(), "money": MONEY})
    done = kplus("predict", out / "model.kplus", odd)
    assert done.out == (out / "labels.csv").read_text()
    assert "size (55 of 58 cells" in done.err
    assert kplus("predict", out / "model.kplus", odd, "--quiet").err == ""
    bad = write(tmp_path / "bad.csv", {"size": ["a", "b"], "money": [1, 2]})
    kplus("predict", out / "model.kplus", bad).refuses(
        "'size' holds string", "not numb"
    )


def test_predictions_keep_the_columns_of_the_fit(kplus, tmp_path, out):
    """Also where they look like row numbers, or are constant."""
    fit(
        kplus,
        write(tmp_path / "fit.csv", {"id": SIZE, "b": MONEY, "c": SIZE[::-1]}),
        out,
    )
    later = {"id": range(N), "b": [3000.0] * N, "c": [None] * N}
    done = kplus("predict", out / "model.kplus", write(tmp_path / "new.csv", later))
    assert (done.code, done.out.count("\n")) == (0, N + 1), done.err


def test_text_with_many_numbers_is_said(kplus, tmp_path, out):
    columns = {"x": [*map(str, range(40)), *["a", "b"] * 10], "y": SIZE}
    columns["x"] = [str(int(c) % 4) if c.isdigit() else c for c in columns["x"]]
    path = write(tmp_path / "t.csv", columns)
    done = fit(kplus, path, out)
    assert "Taken as categories: 'x': 40 of 60 are numbers. --numbers COL" in done.err
    done = fit(kplus, path, out, "--numbers", "x", "--force")
    assert "x (40 of 60 cells, the others count as missing: 'a', 'b')" in done.err


@pytest.mark.parametrize("newline", ["", "\n", "\n\n", "\r\n"])
def test_totals(kplus, tmp_path, out, newline):
    path = write(
        tmp_path / "t.csv", {"name": [f"n{i}" for i in range(N)], "x": SIZE, "y": MONEY}
    )
    text = path.read_text() + f"Total,{sum(SIZE):.2f},{sum(MONEY):.2f}"
    path.write_text(text + newline)
    done = fit(kplus, path, out)
    assert "looks like totals, as it says 'Total'. --skip-last 1 leaves it" in done.err
    done = fit(kplus, path, out, "--skip-last", 1, "--force")
    assert f"{N} rows" in done.err
    assert "a line below the table (left out)" in done.err
    assert "looks like totals" not in done.err
    assert len(labels(out)) == N


def test_a_wide_export_with_totals(kplus, tmp_path, out):
    columns = {"record_id": [str(500_000 + 7 * i) for i in range(N)]}
    columns |= {"created": [f"2026-01-{i % 28 + 1:02d}" for i in range(N)]}
    for j in range(198):
        columns[f"kpi {j}"] = np.round(RNG.normal(size=N) + 9 * GROUP, 2).tolist()
    sums = {name: f"{sum(v):.2f}" for name, v in columns.items() if name[:3] == "kpi"}
    last = {"record_id": "Total", "created": None} | sums
    totals = {name: [*map(str, v), last[name]] for name, v in columns.items()}
    path = write(tmp_path / "wide.csv", totals)
    done = fit(kplus, path, out, "--skip-last", 1)
    assert "Left out: ids: record_id; dates: created." in done.err
    assert library.load(out / "model.kplus").n_features_in_ == 198
    told = fit(kplus, path, out, "--force").err
    assert "Left out: ids: record_id; dates: created." in told
    assert "'Total'. --skip-last 1" in told


TITLES = {
    "lines": "Sales 2026\nby region\n\n",
    "fields": "Sales 2026,\nby region,\n,\n",
    "mixed": 'Sales 2026,,\n"by region, all",,\n',
}


@pytest.mark.parametrize("name", TITLES)
def test_titles_above_the_names(kplus, tmp_path, out, name):
    columns = {"a": SIZE, "b": MONEY, "c": SIZE[::-1]}
    text = write(tmp_path / "t.csv", columns).read_text()
    (tmp_path / "t.csv").write_text(
        TITLES[name].replace("\n", ",\n", name == "fields") + text
    )
    done = fit(kplus, tmp_path / "t.csv", out)
    assert "lines above the names of columns (left out)" in done.err
    assert library.load(out / "model.kplus").feature_names_in_.tolist() == list("abc")


@pytest.mark.parametrize("text", [False, True])
def test_no_names_of_columns(kplus, tmp_path, out, text):
    columns = {"a": SIZE, "b": MONEY}
    columns |= {"c": [["red", "blue"][g] for g in GROUP]} if text else {}
    path = write(tmp_path / "t.csv", columns, include_header=False)
    done = fit(kplus, path, out)
    last = len(columns) - 1
    assert f"no names of columns (called column 0 to column {last})" in done.err
    assert len(labels(out)) == N


def test_row_names_of_pandas(kplus, tmp_path, out):
    path = write(tmp_path / "t.csv", {"": range(N), "a": SIZE, "b": MONEY})
    assert "has no name, names the rows" in fit(kplus, path, out).err


def test_missing_values_of_r(kplus, tmp_path, out):
    """NA is no category, and a gap that is filled."""
    island = [["Biscoe", "Dream"][g] for g in GROUP]
    columns = {
        "island": ["NA", *island[1:]],
        "size": ["NA", *map(str, SIZE[1:])],
        "m": MONEY,
    }
    path = write(tmp_path / "penguins.csv", columns)
    done = fit(kplus, path, out)
    assert "'NA' counts as missing: island." in done.err
    assert library.load(out / "model.kplus").categories_[0] == ("Biscoe", "Dream")
    filled = tmp_path / "filled.csv"
    assert kplus("impute", out / "model.kplus", path, "-o", filled).code == 0
    assert "NA" not in filled.read_text()


def test_gaps_for_models_that_take_none(kplus, tmp_path):
    path = write(tmp_path / "t.csv", {"size": odd_numbers(), "money": MONEY})
    for words in (["path", path], ["fit", path, "--model", "dp-means"]):
        done = kplus(*words, "--quiet")
        done.refuses(
            "'size' has 5 missing values", "fill the gaps first (kplus impute)"
        )


def test_all_that_is_wrong_at_once(kplus, tmp_path):
    columns = {"a": ["x", "y"] * 30, "b": ["u", "v", "w"] * 20, "c": SIZE}
    path = write(tmp_path / "t.csv", columns)
    kplus("fit", path, "--model", "dp-means").refuses(
        "'a' holds", "'b' holds", "--drop"
    )
    lists = pl.DataFrame({"a": [[1]] * N, "b": [{"k": 1}] * N, "c": SIZE})
    lists.write_parquet(tmp_path / "t.parquet")
    kplus("fit", tmp_path / "t.parquet").refuses("'a' holds", "'b' holds", "'b'")


def test_unseen_categories(kplus, customers, out, tmp_path):
    fit(kplus, customers, out)
    new = CUSTOMERS | {"segment": ["phone", *CUSTOMERS["segment"][1:]]}
    path = write(tmp_path / "new.csv", new)
    kplus("predict", out / "model.kplus", path).refuses(
        "'phone' (row 0)", "--unknown miss"
    )
    done = kplus("predict", out / "model.kplus", path, "--unknown", "missing")
    assert done.out.count("\n") == N + 1
    kplus("predict", out / "model.kplus", path, "--unknown", "x").refuses(
        "--unknown is"
    )


def test_standard_input_and_output(kplus, customers, out, tmp_path, monkeypatch):
    fit(kplus, customers, out)

    def piped(*words):
        with open(customers) as file:
            monkeypatch.setattr("sys.stdin", file)
            return kplus(*words)

    done = piped("fit", "-", "-o", "-", *FAST)
    assert done.out == (out / "labels.csv").read_text()
    assert done.err.startswith(f"standard input: {N} rows, 6 columns")
    assert piped("predict", out / "model.kplus", "-").out == done.out
    filled = piped("impute", "-")
    assert filled.out.count("\n") == N + 1, filled.err
    assert piped("impute", out / "model.kplus", "-", "--append").code == 2
    monkeypatch.chdir(tmp_path)
    assert piped("fit", "-", *FAST).code == 0
    assert (tmp_path / "stdin-kplus" / "labels.csv").exists()


def test_where_results_go_by_default(kplus, customers, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert kplus("fit", customers, *FAST).code == 0
    assert (tmp_path / "customers-kplus" / "labels.csv").exists()
    kplus("fit", customers, *FAST).refuses("already has", "--force")


def test_kinds_that_there_are_not(kplus, tmp_path):
    (tmp_path / "t.docx").write_text("")
    kplus("fit", tmp_path / "t.docx").refuses("t.docx", ".csv", ".xlsx")
    (tmp_path / "t.ods").write_text("")
    kplus("fit", tmp_path / "t.ods").refuses("save the sheet as .xlsx or .csv")


def test_command_line_and_python_agree(kplus, customers, out):
    """The same file, by its name and as a frame with a few zeros lost."""
    done = kplus("fit", customers, "-o", out, "--no-report", "--stability", 0)
    assert done.code == 0
    path = library.DPMixture(random_state=0)
    with pytest.warns(library.ColumnsWarning, match="Columns left out") as seen:
        path.fit(customers)
    assert len(seen) == 1
    frame = library.DPMixture(random_state=0)
    with pytest.warns(library.ColumnsWarning, match="Columns left out"):
        frame.fit(pl.read_csv(customers, schema_overrides={"postcode": pl.String}))
    model = library.load(out / "model.kplus")
    for other in (path, frame):
        assert other.labels_.tolist() == model.labels_.tolist() == labels(out)
        assert other.reading_ == model.reading_
