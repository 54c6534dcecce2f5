"use strict";
// The frame of every page: theme, menus, times. Pages work without it.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const dark = () =>
    (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-switch]");
    if (button) {
      root.dataset.theme = dark() ? "light" : "dark";
      document.cookie = `theme=${root.dataset.theme};path=/;max-age=31536000;samesite=lax`;
    }
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens).showModal();
    const copier = event.target.closest("[data-copies]");
    if (copier) {
      navigator.clipboard.writeText(document.getElementById(copier.dataset.copies).textContent).then(() => {
        const label = copier.textContent;
        copier.textContent = "Copied";
        setTimeout(() => (copier.textContent = label), 2000);
      });
    }
    const closer = event.target.closest("[data-closes]");
    if (closer) closer.closest("dialog").close();
  });
  document.addEventListener("keydown", (event) => {
    const find =
      event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && document.querySelector("[data-find]");
    if (find && find.offsetParent && !event.target.closest("input, textarea, select, [contenteditable]")) {
      event.preventDefault();
      find.focus();
    }
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  });

  // Enter takes the next step, where the page has one and nothing else has the focus.
  document.addEventListener("keydown", (event) => {
    const next = document.querySelector("[data-on-enter]");
    if (event.key !== "Enter" || !next || event.target.closest("a, button, input, textarea, select, summary")) return;
    event.preventDefault();
    next.click();
  });

  // What a dot of a plot stands for, beside it while it is pointed at or has the focus.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the link's own label says the same
  document.body.append(tip);
  const show = (target) => {
    const [name, value] = target.dataset.tip.split(/: (?=[^:]*$)/);
    tip.replaceChildren(document.createElement("b"), value || "");
    tip.firstChild.textContent = name;
    tip.hidden = false;
    const dot = (target.querySelector("circle") || target).getBoundingClientRect();
    const left = dot.left + dot.width / 2 - tip.offsetWidth / 2;
    const above = dot.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
    tip.style.top = `${(above > 8 ? above : dot.bottom + 8) + scrollY}px`;
  };
  for (const begins of ["pointerover", "focusin"])
    document.addEventListener(begins, (event) => {
      const target = event.target.closest("[data-tip]");
      if (target) show(target);
      else tip.hidden = true;
    });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });

  // A form that filters submits as soon as something is chosen.
  document.addEventListener("change", (event) => {
    if (event.target.form && event.target.form.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
  });

  // Times come in UTC; show them in the viewer's zone. A day alone is told of no zone.
  const form = new Intl.DateTimeFormat(undefined, {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  });
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const localise = (scope) => {
    for (const time of scope.querySelectorAll("time[datetime*=T]")) {
      const at = new Date(time.getAttribute("datetime"));
      if (!isNaN(at)) {
        time.title = at.toISOString();
        time.textContent = (time.dataset.show === "clock" ? clock : form).format(at);
      }
    }
  };
  localise(document);
  document.addEventListener("htmx:afterSwap", (event) => localise(event.target.parentElement || document));
})();
