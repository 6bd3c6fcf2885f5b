"""Features of 240 sentences of this library: the first line of docstrings, forty of each wing.

The files beside this one were made by it, once; the library has gone on since.
"""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import taskpriors as tp
from taskpriors.rank.reference_set import _load_reference, _read_reference_models

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "taskpriors"
WINGS = ("inputs", "tools", "papers", "prior", "synbench", "transfer")
OF_EACH = 40


def sentences_of(wing):
    "First lines of docstrings, in the order of the files, each once."
    lines = {}
    for path in sorted((PACKAGE / wing).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                line = (ast.get_docstring(node) or "").split("\n")[0]
                if len(line.split()) > 5:
                    lines[line] = None
    return list(lines)


def main():
    texts, wings = [], []
    for wing in WINGS:
        lines = sentences_of(wing)
        order = np.random.default_rng(0).permutation(len(lines))[:OF_EACH]
        texts += [lines[k] for k in sorted(order)]
        wings += [wing] * OF_EACH
    counts = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    features = dict(tfidf_svd=TruncatedSVD(64, random_state=0).fit_transform(counts))
    for reference in _read_reference_models():
        if reference.source == "wheel" and reference.kind == "texts":
            features[reference.name] = tp.embed_texts(
                _load_reference(reference), texts
            ).features.numpy()
    for name, X in features.items():
        np.save(HERE / f"{name}.npy", X.astype(np.float16))
    pd.DataFrame(dict(text=texts, wing=wings)).to_csv(HERE / "texts.csv", index=False)
    known = np.random.default_rng(1).permutation(len(texts))[:30]
    rows = pd.DataFrame(dict(row=np.sort(known), label=[wings[k] for k in np.sort(known)]))
    rows.to_csv(HERE / "thirty_labels.csv", index=False)


if __name__ == "__main__":
    main()
