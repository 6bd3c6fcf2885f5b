// The lines below a search result are prose: code, formulas and what cells print are left out.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const text = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const others = ".highlight, .math, .cell_output, details, .notebook-link, .source-link, .download";
    page.querySelectorAll(others).forEach(e => e.remove());
    return text(page.documentElement.outerHTML, anchor);
  };
});
