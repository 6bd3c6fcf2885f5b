"""Two thousand tables in random dialects: canonical ones are read, all others are refused.

Who writes a file knows what is in it: which label each point has, which text stands where, which
number. A canonical table must be read, and its cells are those of Python's own reader. Any other
table must be read right or refused in a sentence, and never be read otherwise.
"""

import csv
import io
import re
import warnings

import numpy as np
import pytest
from PIL import Image

from taskpriors.inputs import tables
from taskpriors.inputs.feature_files import read_features
from taskpriors.inputs.images import load_images
from taskpriors.inputs.row_labels import read_labels
from taskpriors.inputs.texts import load_texts

SENTENCE = re.compile(r".+\. Got .+; .+\.", re.S)
SEPARATORS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252")
QUOTING = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
KEYS = ("path", "file_name", "image_id", "photo", "row", "index", "id", "", "order", None)
NAMED_KEYS = KEYS[:4]
DEFECTS = ("none", "none", "trailing", "trailing everywhere", "row names", "bare", "short", "long")
CLASSES = (
    ("cat", "dog", "bird"),
    ("NA", "EU", "AS"),
    ("None", "Scratch", "Dent"),
    ("nan", "null", "N/A"),
    ("1.1", "1.10", "2"),
    ("007", "7", "12"),
    ("1e3", "1000", "5"),
    ("0", "1", "2"),
    ("-1", "0", "1"),
    ("a, b", "c; d", "e|f"),
    ('5" x', "it's", "tab\there"),
    ("Café", "thé", "naïve"),
    ("two\nlines", "one", "three"),
    ("3", "5", "8"),
)
REFUSED_CLASSES = (*CLASSES[1:5], CLASSES[6], CLASSES[8])  # which may mean two things
N = 18
NAMES = [f"set/{k:03d}.png" for k in range(N)]


def written(rows, dialect):
    "Rows as a text in a dialect; without quotes where that is the defect."
    separator, quoting, end = dialect["separator"], dialect["quoting"], dialect["end"]
    if dialect["defect"] == "bare":
        return end.join(separator.join(map(str, row)) for row in rows) + end
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end)
    writer.writerows(rows)
    return out.getvalue()


def with_defect(rows, defect, rng, separator):
    "The same rows with a defect that a program or a hand makes."
    header, *body = rows
    if defect == "trailing":
        body = [[*row, ""] for row in body]
    if defect == "trailing everywhere":
        header, body = [*header, ""], [[*row, ""] for row in body]
    if defect == "row names":
        body = [[str(k + 1), *row] for k, row in enumerate(body)]
    if defect in ("short", "long"):
        k = int(rng.integers(len(body)))
        body[k] = body[k][:-1] if defect == "short" else [*body[k], "seen"]
    return [header, *body]


def a_dialect(rng):
    choose = lambda options: options[int(rng.integers(len(options)))]  # noqa: E731
    dialect = dict(
        separator=choose(SEPARATORS), encoding=choose(ENCODINGS), end=choose(("\n", "\r\n"))
    )
    return dialect | dict(quoting=choose(QUOTING), defect=choose(DEFECTS), key=choose(KEYS))


def stored(path, text, encoding):
    try:
        path.write_bytes(text.encode(encoding))
    except UnicodeEncodeError:
        path.write_bytes(text.encode("utf-8"))


def same_cells(path, text, dialect, rows):
    "Are the cells those of Python's reader, where the file has no defect?"
    theirs = list(csv.reader(io.StringIO(text, newline=""), delimiter=dialect["separator"]))
    assert theirs == [list(map(str, row)) for row in rows]
    table = tables.read(path)
    assert (list(table.columns), table.to_numpy().tolist()) == (theirs[0], theirs[1:]), text


def canonical(dialect):
    return dialect["encoding"] in ("utf-8", "utf-8-sig") and dialect["defect"] == "none"


def outcome(read, dialect, text, fine=True):
    "What is read, or None if it is refused in a sentence; a canonical file is not refused."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except (ValueError, TypeError, OSError) as e:
        assert SENTENCE.fullmatch(str(e)), str(e)
        assert not (fine and canonical(dialect)), (str(e), dialect, text)
        return None


def keys_of(key, order):
    return {
        "path": [f"/home/me/{NAMES[k]}" for k in order],
        "file_name": [f"{k:03d}.png" for k in order],
        "image_id": [str(k) for k in order],
        "photo": [f"set\\{k:03d}.png" for k in order],
        "row": [str(k) for k in order],
        "index": [str(k) for k in order],
        "id": [str(k + 1) for k in order],
        "": [str(k) for k in order],
        "order": [str(k) for k in order],
    }[key]


def labels_case(rng, path):
    dialect, classes = a_dialect(rng), CLASSES[int(rng.integers(len(CLASSES)))]
    truth = rng.permutation(np.arange(N) % len(classes))
    key, separator = dialect["key"], dialect["separator"]
    if dialect["defect"] == "row names" and key is not None:
        dialect["defect"] = "none"
    order = np.arange(N) if key is None else rng.permutation(N)
    columns = {} if key is None else {key: keys_of(key, order)}
    columns["label"] = [classes[truth[k]] for k in order]
    if rng.random() < 0.5 or dialect["defect"] in ("short", "long"):
        columns["who"] = ["amy" if k % 2 else "bob" for k in range(N)]
    places = list(columns)
    if dialect["defect"] != "row names":
        places = [places[k] for k in rng.permutation(len(places))]
        places.sort(key=lambda place: place != "")  # the index of pandas stands first
    clean = [places, *([columns[c][k] for c in places] for k in range(N))]
    text = written(with_defect(clean, dialect["defect"], rng, separator), dialect)
    stored(path, text, dialect["encoding"])
    points = None
    if key in NAMED_KEYS:
        points = type("Points", (), dict(names=NAMES, skipped=[]))()
    fine = classes not in REFUSED_CLASSES and key != "order"
    found = outcome(lambda: read_labels(path, points, N), dialect, text, fine)
    if found is not None:
        assert found.targets is None
        said = [found.names[c] if c >= 0 else None for c in found.classes.tolist()]
        expected = [None if classes[k] == "-1" else classes[k] for k in truth]
        assert said == expected, (dialect, text, found.notes)
    if canonical(dialect):
        same_cells(path, text, dialect, clean)
    return found is not None


def texts_case(rng, path):
    dialect = a_dialect(rng)
    marks = [
        "good",
        "bad",
        ", but",
        "; or",
        "|",
        "\t",
        '"so"',
        '5" screen',
        "\nnew",
        "é",
        "7",
        "NA",
    ]
    texts = [f"t{k} " + " ".join(rng.choice(marks, 4)) + "." for k in range(N)]
    if dialect["defect"] == "bare":  # a line break without quotes ends a line, and nothing shows it
        texts = [text.replace("\n", " ") for text in texts]
    columns = dict(text=texts, label=["pos" if k % 3 else "neg" for k in range(N)])
    if rng.random() < 0.5:
        columns["id"] = [f"p{k}" for k in range(N)]
    if rng.random() < 0.2:
        columns = dict(text=texts)
    places = list(columns)
    if dialect["defect"] != "row names":
        places = [places[k] for k in rng.permutation(len(places))]
    if dialect["defect"] in ("short", "long") and len(places) == 1:
        dialect["defect"] = "none"
    clean = [places, *([columns[c][k] for c in places] for k in range(N))]
    rows = with_defect(clean, dialect["defect"], rng, dialect["separator"])
    text = written(rows, dialect)
    stored(path, text, dialect["encoding"])
    fine = len(places) > 1 or dialect["separator"] == ","
    found = outcome(lambda: load_texts(path), dialect, text, fine)
    if found is not None:
        assert list(found) == texts, (dialect, text)
        if "label" in columns:
            said = [found.classes[c] for c in found.labels.tolist()]
            assert said == columns["label"], (dialect, text)
    if fine and canonical(dialect):
        same_cells(path, text, dialect, clean)
    return found is not None


def features_case(rng, path):
    dialect = a_dialect(rng)
    d, decimal = int(rng.integers(2, 6)), "," if rng.random() < 0.4 else "."
    X = rng.normal(size=(N, d)).round(3)
    order = np.arange(N) if dialect["key"] is None else rng.permutation(N)
    words = [[repr(float(x)).replace(".", decimal) for x in X[k]] for k in order]
    names = [f"f{k}" for k in range(d)]
    if dialect["key"] in ("", "index", "id", "row"):
        numbers = [str(k + (dialect["key"] == "id")) for k in order]
        names, words = (
            [dialect["key"], *names],
            [[k, *row] for k, row in zip(numbers, words, strict=True)],
        )
    else:
        words = [words[k] for k in np.argsort(order)]
    if dialect["defect"] == "row names" and len(names) > d:
        dialect["defect"] = "none"
    rows = with_defect([names, *words], dialect["defect"], rng, dialect["separator"])
    text = written(rows, dialect)
    stored(path, text, dialect["encoding"])
    fine = decimal == "."
    found = outcome(lambda: np.asarray(read_features(path)[0]), dialect, text, fine)
    if found is not None:
        assert found.shape == X.shape, (dialect, text)
        np.testing.assert_allclose(found, X, rtol=1e-12, err_msg=text)
    return found is not None


def images_case(rng, path):
    dialect, classes = a_dialect(rng), CLASSES[int(rng.integers(len(CLASSES)))]
    truth = rng.permutation(np.arange(N) % len(classes))
    columns = dict(path=[f"{k:03d}.png" for k in range(N)], label=[classes[k] for k in truth])
    places = ["path", "label"] if rng.random() < 0.5 else ["label", "path"]
    clean = [places, *([columns[c][k] for c in places] for k in range(N))]
    rows = with_defect(clean, dialect["defect"], rng, dialect["separator"])
    text = written(rows, dialect)
    stored(path, text, dialect["encoding"])
    fine = classes not in REFUSED_CLASSES
    found = outcome(lambda: load_images(path), dialect, text, fine)
    if found is not None:
        assert found.names == tuple(columns["path"]), (dialect, text)
        if "-1" not in classes:  # where it is no label
            pairs = set(zip(found.labels.tolist(), columns["label"], strict=True))
            assert len(pairs) == len(classes), (dialect, text)
    return found is not None


CASES = dict(labels=(labels_case, 1000), texts=(texts_case, 400), features=(features_case, 500))
CASES |= dict(images=(images_case, 100))
REFUSALS = {  # a table in another form -> what its refusal says
    "label,\ncat,\ndog,\n": "each column of t.csv must have a name",
    "row,label\n0,cat,\n1,dog,\n": "pandas.read_csv(path, index_col=False)",
    '"who","label"\n"1","amy","cat"\n"2","bob","dog"\n': "pandas.read_csv(path).to_csv(",
    "row;label\n0;0,5\n1;1,5\n": "pandas.read_csv(path, sep=';', decimal=',')",
    "label\nNA\ncat\n": "leave these cells empty",
    "label\n-1\n1\n": "pass labels + 1 if -1 is a class",
    "label\n1.1\n1.10\n": "use words (v1.1)",
    "label,label\na,b\nc,d\n": "rename one of them",
    'label\n"cat\ndog\n': "check its quotes",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_another_form_is_refused_with_what_converts_it(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=re.escape(REFUSALS[text])) as refusal:
        read_labels(tmp_path / "t.csv", None, 2)
    assert SENTENCE.fullmatch(str(refusal.value))


@pytest.mark.parametrize("ending", ["json", "csv.gz", "csv.xz", "feather", "xlsx", "pkl", "zip"])
def test_other_files_are_refused_with_what_converts_them(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(b"nothing")
    for read in (lambda: read_labels(path, None, 2), lambda: read_features(path)):
        with pytest.raises(ValueError, match=r"pandas\.|unpack it|np\.save") as refusal:
            read()
        assert SENTENCE.fullmatch(str(refusal.value))


@pytest.mark.parametrize("use", CASES)
def test_a_table_is_read_as_it_is_meant_or_refused(use, tmp_path):
    case, n_files = CASES[use]
    for k in range(N if use == "images" else 0):
        Image.new("L", (2, 2), k).save(tmp_path / f"{k:03d}.png")
    n_read = sum(case(np.random.default_rng(seed), tmp_path / "t.csv") for seed in range(n_files))
    assert n_read > 0.05 * n_files
