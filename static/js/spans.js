"use strict";
// Passages marked in a judge's analysis: [start, end) in characters of the text as it is displayed.
(() => {
  const box = () => document.querySelector("#work [data-analysis]");
  const field = () => document.querySelector('#work input[name="spans"]');
  const read = () => {
    try {
      return JSON.parse(field()?.value || "[]") || [];
    } catch {
      return [];
    }
  };
  let text = []; // its characters
  const LINE = 240; // characters that one line has at most

  const write = (spans) => {
    const joined = [];
    for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
      if (joined.length && start <= joined.at(-1)[1]) joined.at(-1)[1] = Math.max(joined.at(-1)[1], end);
      else joined.push([start, end]);
    }
    field().value = JSON.stringify(joined);
    draw();
    field().dispatchEvent(new Event("change", { bubbles: true }));
  };
  const slice = (start, end) => text.slice(start, end).join("");
  const draw = () => {
    const spans = read(),
      parts = [];
    let at = 0;
    for (const [start, end] of spans) {
      parts.push(slice(at, start), Object.assign(document.createElement("mark"), { textContent: slice(start, end) }));
      at = end;
    }
    box().replaceChildren(...parts.filter((part) => part !== ""), slice(at));
    document.querySelector("#work [data-marks]").replaceChildren(
      ...spans.map(([start, end], index) => {
        const item = document.createElement("li"),
          quote = slice(start, end).replace(/\s+/g, " ");
        const short = quote.length > 60 ? `${quote.slice(0, 57)}…` : quote;
        const button = Object.assign(document.createElement("button"), {
          type: "button",
          className: "iconbtn",
          textContent: "×",
        });
        button.setAttribute("aria-label", window.words("Remove the mark on: {quote}", { quote: short }));
        button.addEventListener("click", () => write(read().filter((_, other) => other !== index)));
        item.append(Object.assign(document.createElement("q"), { textContent: short, dir: "auto" }), button);
        return item;
      }),
    );
  };

  const trimmed = (start, end) => {
    while (start < end && /\s/.test(text[start])) start++;
    while (end > start && /\s/.test(text[end - 1])) end--;
    return start < end ? [start, end] : null;
  };
  // Where the selection lies in the text, in characters; null where it is not in it.
  const selected = () => {
    const selection = getSelection();
    if (!box() || !selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!box().contains(range.startContainer) || !box().contains(range.endContainer)) return null;
    const upTo = document.createRange();
    upTo.selectNodeContents(box());
    upTo.setEnd(range.startContainer, range.startOffset);
    const start = [...upTo.toString()].length;
    return trimmed(start, start + [...range.toString()].length);
  };
  // Of one line all is meant where nothing is selected.
  const line = () => {
    const whole = trimmed(0, text.length);
    return whole && whole[1] - whole[0] <= LINE && !slice(...whole).includes("\n") ? whole : null;
  };
  // Without a passage it takes the caret to the text, where Shift and the arrow keys select one.
  const mark = () => {
    const chosen = selected(),
      span = chosen || line();
    if (!span) {
      box()?.focus();
      return false;
    }
    const yes = document.querySelector('#work input[name="hallucination"][value="yes"]');
    if (yes && !yes.checked) {
      yes.checked = true;
      yes.dispatchEvent(new Event("change", { bubbles: true }));
    }
    getSelection().removeAllRanges();
    write([...read(), span]);
    if (chosen) box().focus({ preventScroll: true });
    document.getElementById("said").textContent = window.words("Marked: {quote}", { quote: slice(...span) });
    return true;
  };

  const offer = () => {
    const button = document.querySelector("#work [data-mark]");
    if (!button) return;
    button.disabled = !selected() && !line();
    button.querySelector("span").textContent =
      line() && !selected() ? window.words("Mark all of it") : window.words("Mark the selection");
  };
  document.addEventListener("selectionchange", offer);
  // Pressing the button must not take the selection away.
  document.addEventListener("pointerdown", (event) => {
    if (event.target.closest?.("[data-mark]")) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-mark]")) mark();
  });
  // The text takes a caret, so that it can be selected by keyboard, and no change.
  document.addEventListener("beforeinput", (event) => {
    if (event.target.closest?.("[data-analysis]")) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    if (event.target.closest?.("[data-analysis]")) event.preventDefault();
  });

  window.spans = {
    begin() {
      if (!box()) return;
      text = [...box().textContent];
      box().contentEditable = "true";
      box().inputMode = "none";
      box().spellcheck = false;
      draw();
      offer();
    },
    mark,
    missing() {
      const yes = document.querySelector('#work input[name="hallucination"][value="yes"]:checked');
      return box() && yes && !read().length ? window.words("Mark what is not there: press M.") : "";
    },
  };
})();
