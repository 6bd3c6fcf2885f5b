"""Queries that are not among the documents, and prefixes of texts, through the front door."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import ndcg_score
from sklearn.metrics.pairwise import cosine_similarity
from torch.testing import assert_close

import taskpriors as tp
from taskpriors.tools.cli import main

QUIET = tp.Compute(progress=False, cache=False)
TOPICS = dict(cat="purr meow whiskers paw", dog="bark leash kennel paw", bird="wing nest beak song")
N_EACH, N_ASKED = 20, 6


def phrases(n, seed):
    "Texts about three topics in turn, and which topic each has."
    rng = np.random.default_rng(seed)
    topics = [*TOPICS][:3] * n
    words = [rng.choice(TOPICS[topic].split(), 3) for topic in topics]
    return [" ".join([*w, f"no{k}"]) for k, w in enumerate(words)], np.array(topics)


def counted(letters):
    "An encoder: how often each word, or each letter, of the topics stands in a text."
    words = sorted({w for row in TOPICS.values() for w in row.split()})
    units = sorted(set("".join(words))) if letters else words

    def encode(texts):
        split = [list(t) if letters else t.split() for t in texts]
        rows = np.array([[1e-3 + row.count(u) for u in units] for row in split])
        return rows * (
            1 + 0.03 * np.arange(len(units)) ** 1.5
        )  # no two cosines are equal by chance

    return encode


@pytest.fixture(scope="module")
def search():
    "Documents, queries, and the pairs of them that are of one topic."
    documents, of_document = phrases(N_EACH, 0)
    queries, of_query = phrases(N_ASKED, 1)
    pairs = np.argwhere(of_query[:, None] == of_document[None])
    return documents, queries, [(int(q), int(d)) for q, d in pairs]


def ranked(models, documents, retrieval, **options):
    asked = dict(texts=documents, pairs=retrieval, scoring="retrieval", references=False)
    return tp.rank_models(models, **{**asked, "compute": QUIET, **options})


def test_texts_give_precision_and_ndcg_and_are_evidence(search):
    documents, queries, pairs = search
    models = dict(letters=counted(True), words=counted(False))
    ranking = ranked(models, documents, tp.Retrieval(queries=queries, relevant=pairs, k=5))
    truth = np.zeros((len(queries), len(documents)))
    truth[tuple(np.array(pairs).T)] = 1
    for name, encode in models.items():
        cosines = cosine_similarity(encode(queries), encode(documents)).round(7)  # ties
        at = ranking.models.index(name)
        expected = ndcg_score(truth, cosines, k=5)
        assert ranking.extra["ndcg@5"][at].item() == pytest.approx(expected, abs=1e-4)
    frame = ranking.to_frame().set_index("model")
    assert frame["precision@5"]["words"] > frame["precision@5"]["letters"]
    assert ranking.best == "words" and "your 360 pairs" in ranking.verdict
    assert ranking.forecast.evidence == ("points", "pairs")
    assert "ndcg@5" in str(ranking) and "ndcg@5" in ranking._repr_html_()
    assert any("Queries: 18, with 360 relevant of 60" in n for n in ranking.settings["notes"])
    assert any("No study has validated" in n for n in ranking.settings["notes"])
    assert ranking.settings["n"] == 60  # queries are no examples
    assert [b.name for b in ranking.baselines] == ["hashed pieces of words"]


def test_every_way_to_name_them_is_the_same(search, tmp_path):
    documents, queries, pairs = search
    pairs = [(q, d, 1 + (q + d) % 3) for q, d in pairs]
    doc_ids, query_ids = [f"d{k}" for k in range(60)], [f"{900 + k}" for k in range(18)]
    corpus = pd.DataFrame(dict(_id=doc_ids, title="", text=documents))
    asked = pd.DataFrame(dict(question_id=query_ids, text=queries))
    qrels = pd.DataFrame([(query_ids[q], doc_ids[d], g) for q, d, g in pairs])
    qrels.columns = ["question_id", "corpus-id", "score"]
    corpus.to_json(tmp_path / "corpus.jsonl", orient="records", lines=True)
    asked.to_csv(tmp_path / "queries.csv", index=False)
    qrels.to_csv(tmp_path / "qrels.tsv", sep="\t", index=False)
    graded = {}
    for q, d, g in qrels.itertuples(index=False):
        graded.setdefault(q, {})[d] = g
    models = dict(letters=counted(True), words=counted(False))
    first = ranked(models, documents, tp.Retrieval(queries=queries, relevant=pairs))
    for texts, given, relevant in (
        (tmp_path / "corpus.jsonl", tmp_path / "queries.csv", tmp_path / "qrels.tsv"),
        (corpus, asked, qrels),
        (tmp_path / "corpus.jsonl", asked, graded),
        (documents, queries, [(queries[q], documents[d], g) for q, d, g in pairs]),
    ):
        ranking = ranked(models, texts, tp.Retrieval(queries=given, relevant=relevant))
        assert_close(ranking.extra["ndcg@10"], first.extra["ndcg@10"])
        assert_close(ranking.evidence.pairs.mean, first.evidence.pairs.mean)
    features = {name: encode(documents) for name, encode in models.items()}
    by_name = {name: encode(queries) for name, encode in models.items()}
    for name, values in by_name.items():
        np.save(tmp_path / f"{name}.npy", values)
    frames = {k: pd.DataFrame(X, index=doc_ids) for k, X in features.items()}
    query_frames = {k: pd.DataFrame(X, index=query_ids) for k, X in by_name.items()}
    for held, given, relevant in (
        (features, by_name, pairs),
        (features, [by_name["letters"], by_name["words"]], pairs),
        (features, [tmp_path / "letters.npy", tmp_path / "words.npy"], pairs),
        (frames, query_frames, qrels),
    ):
        of_features = tp.Retrieval(queries=given, relevant=relevant)
        ranking = ranked(held, None, of_features)
        assert_close(ranking.extra["ndcg@10"], first.extra["ndcg@10"])
        assert_close(ranking.evidence.pairs.mean, first.evidence.pairs.mean)


def test_images_are_searched_by_images():
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures, labels = digits.images[:150] / 16, digits.target[:150]
    documents, queries = tp.load_images(pictures[30:]), pictures[:30]
    pairs = np.argwhere(labels[:30, None] == labels[None, 30:])
    flat = torch.nn.Flatten(), lambda p: torch.from_numpy(np.array(p.convert("L"), "float32"))[None]
    coarse = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()), flat[1]
    retrieval = tp.Retrieval(queries=queries, relevant=pairs)
    named = dict(pixels=flat, coarse=coarse)
    ranking = tp.rank_models(
        named, documents, pairs=retrieval, scoring="retrieval", references=False, compute=QUIET
    )
    frame = ranking.to_frame().set_index("model")["precision@10"]
    X = torch.tensor(pictures).flatten(1)
    cosines = torch.tensor(cosine_similarity(X[:30], X[30:]))
    hits = torch.tensor(labels[30:])[cosines.topk(10).indices] == torch.tensor(labels[:30, None])
    assert frame["pixels"] == pytest.approx(hits.double().mean().item(), abs=0.05)
    assert frame["pixels"] > frame["coarse"]


def test_it_is_saved_and_shown(search, tmp_path):
    documents, queries, pairs = search
    models = dict(letters=counted(True), words=counted(False))
    ranking = ranked(models, documents, tp.Retrieval(queries=queries, relevant=pairs))
    again = tp.Ranking.load(ranking.save(tmp_path / "saved"))
    assert again.verdict == ranking.verdict
    assert_close(again.extra["ndcg@10"], ranking.extra["ndcg@10"])
    page = ranking.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "precision@10" in page and "nearest to a query" in page
    alone = ranked(
        dict(words=counted(False)), documents, tp.Retrieval(queries=queries, relevant=pairs)
    )
    assert alone.extra["precision@10"].shape == (1,) and alone.forecast.evidence == ("points",)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        (dict(scoring="accuracy"), ValueError, "`pairs` can only be used with scoring='retrieval'"),
        (
            dict(scoring="ndcg@10"),
            ValueError,
            "a score whose forecast is calibrated. Got 'ndcg@10'; pass sc",
        ),
        (dict(labels=["a"] * 60), ValueError, "`pairs` and `labels` cannot be used together"),
        (dict(pairs=[("who", 1), (1, 2)]), ValueError, "the queries of relevant must be rows"),
        (dict(pairs=[(0, 1), (0, 2)]), ValueError, "at least two queries must have a relevant"),
        (dict(queries=["a", ""]), ValueError, "texts must not be empty"),
        (dict(queries=dict(words=[[1.0]])), ValueError, "`queries` must be texts or images"),
        (dict(k=61), ValueError, "`k` must not exceed the number of documents. Got 61 of 60"),
        (
            dict(models=dict(a=np.eye(60))),
            ValueError,
            "queries as texts or images require models that embed them. Got features",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(search, changed, error, text):
    documents, queries, pairs = search

    def unwanted(texts):
        raise AssertionError("a model was called")

    changed = dict(changed)
    models = changed.pop("models", dict(a=unwanted, b=unwanted))
    retrieval = dict(queries=queries, relevant=pairs)
    names = dict(queries="queries", pairs="relevant", k="k")
    retrieval |= {names[k]: changed.pop(k) for k in names if k in changed}
    with pytest.raises(error, match=f"^(rank_models|load_texts): .*{text}"):
        ranked(models, documents, tp.Retrieval(**retrieval), **changed)


def spoken(asked):
    "An encoder of words that is of use only behind the prefixes that it was trained on."
    encode = counted(False)

    def encode_spoken(texts):
        rows, told = encode(texts), [t.startswith(("query: ", "passage: ")) for t in texts]
        asked.extend(t.split(":")[0] for t in texts)
        return np.where(
            np.array(told)[:, None], rows, rows.sum(1, keepdims=True) ** 0 + rows * 1e-3
        )

    return encode_spoken


def test_prefixes_stand_before_texts_and_queries(search):
    documents, queries, pairs = search
    asked, plain = [], []
    e5 = tp.prefixed(spoken(asked), "passage: ", queries="query: ")
    models = {"e5": e5, "without": spoken(plain), "words": counted(False)}
    ranking = ranked(models, documents, tp.Retrieval(queries=queries, relevant=pairs))
    assert set(asked) == {"passage", "query"} and not set(plain) & {"passage", "query"}
    frame = ranking.to_frame().set_index("model")
    assert_close(frame["ndcg@10"]["e5"], frame["ndcg@10"]["words"])
    notes = ranking.settings["notes"]
    assert "e5 prepends 'passage: ' to each text, and 'query: ' to each query." in notes
    once = []
    tp.rank_models(
        dict(e5=tp.prefixed(spoken(once), "query: "), words=counted(False)),
        texts=documents,
        references=False,
        compute=QUIET,
    )
    assert set(once) == {"query"}
    with pytest.raises(ValueError, match="a prefix requires texts"):
        tp.rank_models([tp.prefixed(torch.nn.Flatten(), "query: ")], "digits", compute=QUIET)


def test_the_command_line_takes_queries_and_prefixes(search, tmp_path, capsys):
    documents, queries, pairs = search
    for side, texts in dict(docs=documents, asked=queries).items():
        (tmp_path / side).mkdir()
        for k, letters in enumerate((True, False)):
            np.save(tmp_path / side / f"model{k}.npy", counted(letters)(texts))
    pd.DataFrame(pairs, columns=["query", "document"]).to_csv(tmp_path / "qrels.csv", index=False)
    docs, asked = (sorted(tmp_path.glob(f"{side}/*.npy")) for side in ("docs", "asked"))
    words = ["rank", "--models", *docs, "--queries", *asked, "--relevant"]
    words += [tmp_path / "qrels.csv", "--scoring", "retrieval", "--k", 5, "--out", tmp_path / "out"]
    assert main([*map(str, words), "--quiet", "--references", "none"]) == 0
    out = capsys.readouterr().out
    assert "Take model1" in out and "ndcg@5" in out
    command = json.loads((tmp_path / "out" / "ranking.json").read_text())["command"]
    assert command["queries"] == [*map(str, asked)]
    again = ["rank", "--config", str(tmp_path / "out" / "ranking.json"), "--out"]
    assert main([*again, str(tmp_path / "again"), "--quiet"]) == 0
    assert "Take model1" in capsys.readouterr().out
    for wrong, text in (
        (["--queries", *asked], "Got no --relevant"),
        (["--queries", tmp_path / "askd", "--relevant", tmp_path / "qrels.csv"], "did you mean"),
        (["--prefix", "query: "], "--prefix is for --texts"),
    ):
        assert main(["rank", "--models", *map(str, [*docs, *wrong])]) != 0
        assert text in capsys.readouterr().err
