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
      const source = document.getElementById(copier.dataset.copies);
      navigator.clipboard.writeText(source.value ?? source.textContent).then(() => {
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

  // The list under the search box: arrows go through it, Escape and a look elsewhere close it.
  const finds = document.getElementById("finds");
  if (finds) {
    const box = document.querySelector("[data-find]");
    finds.parentElement.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        const stops = [box, ...finds.querySelectorAll("a")];
        stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
        event.preventDefault();
      }
      if (event.key === "Escape") {
        finds.replaceChildren();
        box.focus();
      }
    });
    finds.parentElement.addEventListener("focusout", (event) => {
      if (!finds.parentElement.contains(event.relatedTarget)) finds.replaceChildren();
    });
    finds.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus until the click
  }

  // A table that goes on to the side fades there.
  const fade = (wrap) => {
    const left = wrap.scrollLeft > 1;
    const right = wrap.scrollLeft + wrap.clientWidth < wrap.scrollWidth - 1;
    wrap.dataset.more = `${left ? "left" : ""} ${right ? "right" : ""}`.trim();
  };
  const sized = new ResizeObserver((entries) => entries.forEach((entry) => fade(entry.target)));
  const watch = (scope) => scope.querySelectorAll(".tablewrap").forEach((wrap) => sized.observe(wrap));
  watch(document);
  document.addEventListener("htmx:afterSwap", (event) => watch(event.target.parentElement || document));
  document.addEventListener("scroll", (event) => event.target.matches?.(".tablewrap") && fade(event.target), true);

  // A form that filters submits as soon as something is chosen.
  document.addEventListener("change", (event) => {
    if (event.target.form && event.target.form.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
  });

  // Times come in UTC; show them in the viewer's zone. A day alone is told of no zone.
  const language = root.lang === "en" ? "en-GB" : root.lang; // the page's, not the browser's: 25 Nov 2026
  const form = new Intl.DateTimeFormat(language, {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  });
  const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const since = new Intl.RelativeTimeFormat(language, { style: "narrow" });
  const now = new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(0, "second");
  const ago = (at) => {
    const minutes = Math.round((at - Date.now()) / 60000);
    if (!minutes) return now;
    const [unit, size] = minutes > -60 ? ["minute", 1] : minutes > -1440 ? ["hour", 60] : ["day", 1440];
    const past = minutes > -10080 && since.format(Math.round(minutes / size), unit);
    return past
      ? past.replace(/(\d) ?(hr|[a-z])/, (_, n, unit) => `${n} ${unit === "hr" ? "h" : unit}`)
      : form.format(at);
  };
  const localise = (scope) => {
    for (const time of scope.querySelectorAll("time[datetime*=T]")) {
      const at = new Date(time.getAttribute("datetime"));
      if (isNaN(at)) continue;
      time.title = form.format(at);
      time.textContent = { clock: (at) => clock.format(at), ago }[time.dataset.show]?.(at) ?? time.title;
    }
  };
  localise(document);
  document.addEventListener("htmx:afterSwap", (event) => localise(event.target.parentElement || document));
})();
