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

  // Rows by a part of their names; groups without rows go.
  const box = document.querySelector("[data-filter-rows]");
  const rows = () => [...document.querySelectorAll(".lb tbody tr:not(.group)")];
  if (box) {
    const said = box.parentElement.querySelector("output");
    const filter = () => {
      const asked = box.value.trim().toLowerCase();
      const all = rows();
      for (const row of all) row.hidden = !row.querySelector("th").textContent.toLowerCase().includes(asked);
      for (const group of document.querySelectorAll(".lb tr.group")) {
        let next = group.nextElementSibling;
        while (next && next.hidden && !next.matches(".group")) next = next.nextElementSibling;
        group.hidden = !next || next.matches(".group");
      }
      said.textContent = asked ? `${all.filter((row) => !row.hidden).length} of ${all.length}` : "";
    };
    box.addEventListener("input", filter);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      box.value = "";
      filter();
    });
  }

  // Which rows are significantly better or worse than the one that is pointed at, has the focus or was tapped.
  const apart = document.querySelector("[data-tell-apart]");
  if (apart) {
    const board = document.querySelector(".lb");
    const told = rows();
    const worse = told.map((row) => new Set((row.dataset.worse || "").split(" ")));
    const clear = () => told.forEach((row) => row.classList.remove("pointed", "same"));
    const point = (event) => {
      const at = apart.checked ? told.indexOf(event.target.closest("tr")) : -1;
      if (at < 0) return;
      clear();
      told[at].classList.add("pointed");
      told.forEach((row, other) => {
        const word = worse[at].has(`${other}`) ? "worse" : worse[other].has(`${at}`) ? "better" : "same";
        const tested = !row.matches(".prov, .base");
        row.classList.toggle("same", other !== at && tested && word === "same");
        row.querySelector(".against").textContent = other === at ? "" : tested ? word : "not tested";
      });
    };
    board.addEventListener("mouseover", point);
    board.addEventListener("focusin", point);
    board.addEventListener("click", point);
    apart.addEventListener("change", () => {
      clear();
      for (const cell of board.querySelectorAll(".against")) cell.remove();
      if (!apart.checked) return;
      board
        .querySelector("thead tr")
        .append(Object.assign(document.createElement("th"), { className: "against", textContent: "Against row" }));
      for (const row of told) row.append(Object.assign(document.createElement("td"), { className: "against" }));
      for (const group of board.querySelectorAll("tr.group th")) group.colSpan = board.rows[0].cells.length;
    });
  }
})();
