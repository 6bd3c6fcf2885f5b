"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

// The theme: that of the system, light or dark. A page from a file may not remember it.
const themes = { "": "as the system", light: "light", dark: "dark" };
const themeButton = document.getElementById("theme");
function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  themeButton.textContent = `Theme: ${themes[theme]}`;
}
themeButton.addEventListener("click", () => {
  const names = Object.keys(themes);
  const theme = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  showTheme(theme);
  try { localStorage.setItem("theme", theme); } catch { /* storage is closed */ }
});
let remembered = "";
try { remembered = localStorage.getItem("theme") || ""; } catch { /* storage is closed */ }
showTheme(remembered in themes ? remembered : "");
themeButton.hidden = false;

// The table: a click on a heading sorts by it, a second click the other way; blanks stay last.
const table = document.querySelector("table.sortable");
const headings = [...table.querySelectorAll("thead th[aria-sort]")];
headings.forEach((heading) => heading.querySelector("button").addEventListener("click", () => {
  const column = Number(heading.dataset.column);
  const text = typeof data.values[0][column] === "string";
  const usual = text ? "ascending" : "descending";
  const other = text ? "descending" : "ascending";
  const order = heading.getAttribute("aria-sort") === usual ? other : usual;
  const sign = order === "ascending" ? 1 : -1;
  const compared = (a, b) => {
    const [x, y] = [a, b].map((row) => data.values[Number(row.dataset.row)][column]);
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (text ? x.localeCompare(y) : x - y);
  };
  headings.forEach((h) => h.setAttribute("aria-sort", h === heading ? order : "none"));
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compared));
}));

// Two models against each other, in a sentence.
const choices = document.querySelector(".compare");
if (choices) {
  const [a, b] = choices.querySelectorAll("select");
  const sign = (x) => (x < 0 ? "\u2212" : "+") + Math.abs(x).toFixed(1);
  const say = () => {
    const [i, j] = [Number(a.value), Number(b.value)];
    const p = data.pairs;
    choices.querySelector("output").textContent = i === j ? "Choose two different models." :
      `${p.models[i]} against ${p.models[j]}: ${sign(p.margin[i][j])} accuracy points `
      + `(${sign(p.low[i][j])} to ${sign(p.high[i][j])}), `
      + `probability of being ahead ${p.probability[i][j].toFixed(2)}.`;
  };
  [a, b].forEach((select) => select.addEventListener("change", say));
  choices.hidden = false;
  say();
}

// What is folded unfolds where a link leads to it, and on paper.
const unfolded = (part) => { if (part) part.open = true; };
document.querySelectorAll("nav a").forEach((link) => link.addEventListener("click", () => {
  unfolded(document.querySelector(link.getAttribute("href")).closest("details"));
}));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(unfolded));
