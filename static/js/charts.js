"use strict";
// What a mark of a plot or a figure of a table stands for, beside it while it is pointed at or has the focus; a row of
// a table and its dot light up together. Plots and tables are whole without this: what is told here is their titles.
(() => {
  const MARKS = ".hit, svg.iv[role=img], table.data [title]";
  const wide = matchMedia("(min-width: 900px)");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // assistive technology reads the titles
  document.body.append(tip);
  let shown = null; // the mark, with what puts its title back: two boxes would say the same

  const taken = (mark) => {
    const title = mark.querySelector(":scope > title");
    if (title) {
      title.remove();
      return [title.textContent, () => mark.prepend(title)];
    }
    const said = mark.getAttribute("title");
    if (!said) return [mark.getAttribute("aria-label").replace(", ", "\n"), () => {}];
    mark.removeAttribute("title");
    return [said, () => mark.setAttribute("title", said)];
  };

  const does = (mark) => {
    const to = mark.closest("[data-does]");
    return to && (mark.matches("a") || mark.querySelector("a")) ? to.dataset.does : "";
  };

  const hide = () => {
    if (shown) shown.back();
    shown = null;
    tip.hidden = true;
  };

  const show = (mark) => {
    hide();
    const [said, back] = taken(mark);
    shown = { mark, back };
    const [name, ...lines] = said.split("\n");
    tip.replaceChildren(
      ...[[name, "b"], ...lines.map((line) => [line, "div"]), [does(mark), "small"]]
        .filter(([text]) => text)
        .map(([text, tag]) => Object.assign(document.createElement(tag), { textContent: text })),
    );
    tip.hidden = false;
    const dot = (mark.querySelector(".at, circle") || mark).getBoundingClientRect();
    const left = dot.left + dot.width / 2 - tip.offsetWidth / 2;
    const above = dot.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8)) + scrollX}px`;
    tip.style.top = `${(above > 8 ? above : dot.bottom + 8) + scrollY}px`;
  };

  for (const begins of ["pointerover", "focusin"])
    document.addEventListener(begins, (event) => {
      const mark = wide.matches && event.target.closest(MARKS);
      if (!mark) hide();
      else if (!shown || shown.mark !== mark) show(mark);
    });
  document.addEventListener("pointerleave", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
})();
