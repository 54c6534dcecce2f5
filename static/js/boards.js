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

  // The folded pickers open under their button, as far as there is room.
  for (const more of document.querySelectorAll(".morefilters"))
    more.addEventListener("toggle", () => {
      const [list, row] = [more.querySelector(".menu-list"), more.parentElement.getBoundingClientRect()];
      const room = row.right - more.getBoundingClientRect().left - list.offsetWidth;
      if (getComputedStyle(list).position === "absolute") list.style.right = `${Math.max(0, room)}px`;
    });

  // "How to read it" stays as it was left; the server has set the attribute, so that nothing moves.
  const root = document.documentElement;
  const open = () => root.dataset.howto !== "closed";
  for (const button of document.querySelectorAll("[data-howto][aria-expanded]")) {
    button.setAttribute("aria-expanded", open());
    button.addEventListener("click", () => {
      root.dataset.howto = open() ? "closed" : "open";
      document.cookie = `howto=${root.dataset.howto};path=/;max-age=31536000;samesite=lax`;
      button.setAttribute("aria-expanded", open());
    });
  }

  // A plot as PNG is drawn here, from its SVG, at twice its size on white; without this script there is the SVG.
  const drawn = async (link) => {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(answer.statusText);
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await answer.text())}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * picture.naturalWidth;
    canvas.height = 2 * picture.naturalHeight;
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const named = /filename="([^"]+)\.svg"/.exec(answer.headers.get("Content-Disposition") || "");
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    const file = document.createElement("a");
    file.href = URL.createObjectURL(blob);
    file.download = `${named ? named[1] : "plot"}.png`;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 10000);
  };
  for (const link of document.querySelectorAll("[data-png]")) {
    link.hidden = false;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      drawn(link).catch(() => location.assign(link.href)); // the SVG is better than nothing
    });
  }

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
    if (event.target.closest("thead a"))
      sessionStorage.setItem(key, JSON.stringify({ left: wrap.scrollLeft, top: scrollY }));
  });
})();
