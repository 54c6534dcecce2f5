"use strict";
// Boards work without this; it keeps addresses short and the place in a wide table.
(() => {
  // A filter that is not set leaves no trace in the address.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-drop-empty]")) return;
    for (const field of event.target.elements) if (field.name && field.value === "") field.disabled = true;
  });
  addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll("[data-drop-empty] :disabled")) field.disabled = false;
  });

  // Sorting by a column far right comes back to that column.
  const wrap = document.querySelector(".tablewrap.tall");
  if (!wrap) return;
  const key = `scrolled:${location.pathname}`;
  const kept = JSON.parse(sessionStorage.getItem(key) || "null");
  if (kept) {
    sessionStorage.removeItem(key);
    wrap.scrollLeft = kept.left;
    scrollTo(0, kept.top);
  }
  wrap.addEventListener("click", (event) => {
    if (event.target.closest("thead a")) sessionStorage.setItem(key, JSON.stringify({ left: wrap.scrollLeft, top: scrollY }));
  });
})();
