"use strict";
// The form of a submission: a file can be dropped, only the chosen benchmark's facts are shown, and a check leaves the
// chosen file where it is.
(() => {
  const begin = (form) => {
    for (const zone of form.querySelectorAll("[data-drop]")) {
      for (const name of ["dragenter", "dragover"])
        zone.addEventListener(name, (event) => {
          event.preventDefault();
          zone.classList.add("over");
        });
      for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
      zone.addEventListener("drop", (event) => {
        event.preventDefault();
        const input = zone.querySelector("input[type=file]");
        if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
      });
    }
    const select = form.querySelector("select[name=benchmark]");
    const choose = () => {
      for (const panel of form.querySelectorAll("[data-benchmark]"))
        panel.hidden = panel.dataset.benchmark !== select.value;
    };
    select.addEventListener("change", choose);
    choose();
    form.addEventListener("submit", check);
  };

  // A page that is loaded anew has no file chosen: the answer to a check takes the form's place, around the same field.
  const check = async (event) => {
    if (event.submitter?.name !== "check") return;
    event.preventDefault();
    const form = event.currentTarget;
    const button = event.submitter;
    button.disabled = true;
    try {
      const data = new FormData(form);
      data.append(button.name, button.value);
      const answer = await fetch(form.action, { method: "POST", body: data });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("form[data-checked-here]");
      const file = form.querySelector("input[type=file]");
      fresh.querySelector("input[type=file]").replaceWith(file);
      for (const said of fresh.querySelectorAll("[data-chosen]"))
        said.textContent = "The file is still chosen: Submit sends it.";
      form.replaceWith(fresh);
      begin(fresh);
      fresh.querySelector(".notice, [role=alert]")?.scrollIntoView({ block: "nearest" });
    } catch {
      // No connection, or another page: send it as a form, so that the browser shows what came.
      button.disabled = false;
      form.removeEventListener("submit", check);
      button.click();
    }
  };

  const form = document.querySelector("form[data-checked-here]");
  if (form) begin(form);
})();
