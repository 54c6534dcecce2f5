"use strict";
// The form of a submission: a file can be dropped, and only the chosen benchmark's facts are shown.
(() => {
  for (const zone of document.querySelectorAll("[data-drop]")) {
    const input = zone.querySelector("input[type=file]");
    for (const name of ["dragenter", "dragover"])
      zone.addEventListener(name, (event) => {
        event.preventDefault();
        zone.classList.add("over");
      });
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
    });
  }
  const select = document.querySelector("select[name=benchmark]");
  if (!select) return;
  const facts = [...document.querySelectorAll("[data-benchmark]")];
  const choose = () => {
    for (const panel of facts) panel.hidden = panel.dataset.benchmark !== select.value;
  };
  select.addEventListener("change", choose);
  choose();
})();
