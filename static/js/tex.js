"use strict";
// Draws LaTeX with KaTeX, which is fetched only where a formula stands. Without it the source stays readable.
(() => {
  const { script, sheet } = document.currentScript.dataset;
  let coming = null;

  const fetched = () =>
    (coming ||= new Promise((resolve, reject) => {
      const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: sheet });
      const code = Object.assign(document.createElement("script"), { src: script, onload: resolve, onerror: reject });
      document.head.append(link, code);
    }));

  window.drawTex = async (root) => {
    const formulas = [...root.querySelectorAll(".tex:not([data-drawn])")];
    if (!formulas.length) return;
    try {
      await fetched();
    } catch {
      coming = null;
      return;
    }
    for (const formula of formulas) {
      if ("drawn" in formula.dataset) continue; // by another call that waited for the same files
      const source = formula.textContent;
      formula.dataset.drawn = "";
      try {
        window.katex.render(source, formula, {
          displayMode: "display" in formula.dataset,
          throwOnError: true,
          trust: false,
          strict: "ignore",
          maxExpand: 500,
          maxSize: 20,
        });
      } catch {
        formula.textContent = source;
      }
    }
  };
  window.drawTex(document);
})();
