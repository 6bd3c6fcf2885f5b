// The folded checks of a page stand behind one line at its end; without a script each has its own.
document.addEventListener("DOMContentLoaded", () => {
  const folded = [...document.querySelectorAll("div.cell.tag_hide-input")];
  const checks = folded.filter(cell => cell.querySelector("summary")?.textContent.includes("A check, passed"));
  const article = document.querySelector("article");
  if (!checks.length || !article) return;
  const line = document.createElement("button");
  const show = shown => {
    checks.forEach(cell => { cell.hidden = !shown; });
    line.textContent = `${checks.length} ${checks.length > 1 ? "checks" : "check"} passed on this page. ${shown ? "Fold" : "Show"}`;
    line.setAttribute("aria-expanded", shown);
  };
  line.className = "checks-line";
  line.addEventListener("click", () => show(checks[0].hidden));
  article.append(line);
  show(false);
});
