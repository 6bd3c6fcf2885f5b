// Pages for users stand before chapters that mention the same words, and the list of names behind.
var Scorer = {
  score: (result) => result[4] + (result[0].startsWith("start/") ? 9 : result[0] === "names" ? -20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
