"use strict";
// The frame of every page: theme, menus, times. Pages work without it.
(() => {
  const root = document.documentElement;
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
