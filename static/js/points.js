"use strict";
// Points for each component: digits go to the part at hand, Enter to the next one, the total is always shown.
(() => {
  const fields = () => [...document.querySelectorAll("#work input[name=points]")];
  const value = (field) => (field.value.trim() === "" ? null : Number(field.value.replace(",", ".")));
  const good = (field) => {
    const given = value(field);
    return given !== null && given >= 0 && given <= Number(field.max);
  };

  const total = () => {
    const output = document.querySelector("#work [data-total-points]");
    if (!output) return;
    const given = fields()
      .map(value)
      .filter((each) => each !== null && !isNaN(each));
    output.textContent = given.length ? String(+given.reduce((sum, each) => sum + each, 0).toFixed(6)) : "–";
    for (const field of fields()) field.toggleAttribute("aria-invalid", value(field) !== null && !good(field));
    output.classList.toggle("bad", Boolean(wrong()));
    document.querySelector("#work [data-points-wrong]").textContent = wrong();
  };
  // Which part has points that it cannot have.
  const wrong = () => {
    const at = fields().findIndex((field) => value(field) !== null && !good(field));
    return at < 0
      ? ""
      : window.words("Part {number}: a number from 0 to {weight}.", {
          number: at + 1,
          weight: Number(fields()[at].max),
        });
  };
  document.addEventListener("input", (event) => {
    if (event.target.name === "points") total();
  });

  window.points = {
    begin: total,
    // The part at hand: the one in focus, else the first without points.
    digit(number) {
      const field = fields().find((each) => value(each) === null);
      if (!field) return false;
      field.focus();
      field.value = number;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      return true;
    },
    // From one part to the next without points; false when there is none.
    next() {
      const field = fields().find((each) => !good(each));
      field?.focus();
      field?.select();
      return Boolean(field);
    },
    missing() {
      if (wrong()) return wrong();
      return fields().every(good) ? "" : `${document.querySelector("#work [data-points]").dataset.missing}.`;
    },
  };
})();
