"use strict";
// Drops files: sends them as one stream in pieces that may be sent again, so that a lost network or a reload costs
// nothing. Without this script the same form sends them at once.
(() => {
  const form = document.querySelector("[data-drop]");
  if (!form || !window.Blob) return;
  const zone = form.querySelector(".drop");
  const panel = form.querySelector("[data-sending]");
  const bar = panel.querySelector("progress");
  const part = (name) => form.querySelector(`[data-${name}]`);
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
  const api = form.dataset.api;
  const piece = Number(form.dataset.chunk);
  const resume = form.dataset.resume || "";
  const junk = /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini|__MACOSX\/.*|\._[^/]*)$/;
  const waits = [1, 2, 4, 8, 15, 30]; // seconds between tries
  let sending = null; // {id, request, cancelled}

  for (const hidden of form.querySelectorAll(".scripted")) hidden.hidden = false;
  form.querySelector("#files").required = false;

  const size = (bytes) =>
    bytes < 1e6
      ? `${Math.ceil(bytes / 1e3).toLocaleString()} KB`
      : bytes < 1e9
        ? `${(bytes / 1e6).toFixed(1)} MB`
        : `${(bytes / 1e9).toFixed(2)} GB`;
  const lasting = (seconds) =>
    seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
  const say = (text) => {
    part("fault").hidden = !text;
    part("fault").querySelector("span").textContent = text;
  };
  const sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

  // -- what was dropped, with paths below the folder ------------------------------------------------------------
  const entries = async (entry, path, into) => {
    if (entry.isFile) {
      into.push({ path: path + entry.name, file: await new Promise((yes, no) => entry.file(yes, no)) });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((yes, no) => reader.readEntries(yes, no));
      if (!some.length) return;
      for (const inner of some) await entries(inner, `${path}${entry.name}/`, into);
    }
  };
  const dropped = async (transfer) => {
    const roots = [...transfer.items]
      .filter((item) => item.kind === "file")
      .map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry());
    if (!roots.length || roots.some((root) => !root))
      return [...transfer.files].map((file) => ({ path: file.name, file }));
    const found = [];
    for (const root of roots) await entries(root, "", found);
    return found;
  };

  // -- requests -------------------------------------------------------------------------------------------------
  // Resolves to {status, body}; status 0 is a network that failed.
  const ask = (method, url, body, headers, onprogress) =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      request.setRequestHeader("X-CSRFToken", token);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      if (onprogress) request.upload.onprogress = (event) => onprogress(event.loaded);
      request.onloadend = () => {
        let answer = {};
        try {
          answer = JSON.parse(request.responseText);
        } catch {
          /* an error page of something in between */
        }
        done({ status: request.status, body: answer });
      };
      if (sending) sending.request = request;
      request.send(body);
    });
  const json = (method, url, value) =>
    ask(
      method,
      url,
      value === undefined ? null : JSON.stringify(value),
      value === undefined ? {} : { "Content-Type": "application/json" },
    );
  const words = (answer) => {
    const first = (value) =>
      Array.isArray(value)
        ? first(value[0])
        : value && typeof value === "object"
          ? first(Object.values(value)[0])
          : value;
    return first(answer.body) || `The site answered with ${answer.status}. Try again.`;
  };
  const hash = async (blob) => {
    if (!window.crypto || !crypto.subtle) return "";
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };

  // -- sending --------------------------------------------------------------------------------------------------
  const show = (done, total, since, before) => {
    bar.value = total ? (100 * done) / total : 0;
    part("done").textContent = `${size(done)} of ${size(total)}`;
    const seconds = (performance.now() - since) / 1000;
    const rate = seconds > 1 ? (done - before) / seconds : 0;
    part("rate").textContent = rate ? `${size(rate)} a second, ${lasting((total - done) / rate)} left` : "";
  };

  const send = async (files) => {
    files = files.filter(({ path }) => !junk.test(path)).sort((a, b) => (a.path < b.path ? -1 : 1));
    if (!files.length || sending) return;
    say("");
    const total = files.reduce((sum, { file }) => sum + file.size, 0);
    if (resume && (files.length !== Number(form.dataset.files) || total !== Number(form.dataset.size))) {
      say(
        "These are other files than those that were begun: their number or size differs. Drop the same ones, or cancel this upload and begin another.",
      );
      return;
    }
    sending = { id: resume, cancelled: false };
    zone.hidden = true;
    panel.hidden = false;
    part("name").textContent = files.length === 1 ? files[0].file.name : `${files.length.toLocaleString()} files`;
    let offset = Number(form.dataset.offset || 0);
    if (!sending.id) {
      const begun = await json("POST", api, {
        files: files.map(({ path, file }) => ({ name: path, size: file.size })),
        benchmark: form.querySelector("[name=benchmark]")?.value,
      });
      if (begun.status !== 201)
        return stop(begun.status ? words(begun) : "No connection. Try again when there is one.");
      sending.id = begun.body.id;
    }
    const stream = new Blob(files.map(({ file }) => file)); // holds references, no bytes
    const [since, before] = [performance.now(), offset];
    let failures = 0;
    while (offset < total && !sending.cancelled) {
      const blob = stream.slice(offset, offset + piece);
      let headers;
      try {
        headers = {
          "Content-Type": "application/offset+octet-stream",
          "Upload-Offset": String(offset),
          "Upload-Sha256": await hash(blob),
        };
      } catch {
        return stop("The file cannot be read any more: it was moved or changed. Drop it again.");
      }
      const at = offset;
      const answer = await ask("PATCH", `${api}${sending.id}/`, blob, headers, (loaded) =>
        show(at + loaded, total, since, before),
      );
      if (sending.cancelled) return;
      if (answer.status === 200) {
        offset = answer.body.offset;
        failures = 0;
      } else if (answer.status === 409 && typeof answer.body.offset === "number" && failures < 5) {
        offset = answer.body.offset;
        failures += 1;
        await sleep(waits[Math.min(failures, waits.length) - 1]);
      } else if (answer.status === 0 || answer.status >= 500 || (answer.status === 400 && failures < 3)) {
        part("waits").hidden = answer.status === 400;
        await sleep(waits[Math.min(failures, waits.length - 1)]);
        failures += 1;
        continue;
      } else {
        return stop(
          answer.status === 403 || answer.status === 401
            ? "You are signed out. Sign in again; the upload goes on from where it stopped."
            : words(answer),
        );
      }
      part("waits").hidden = true;
      show(offset, total, since, before);
    }
    if (!sending.cancelled) {
      const id = sending.id;
      sending = null;
      location.assign(`${form.getAttribute("action")}${id}/`);
    }
  };

  const stop = (reason) => {
    sending = null;
    panel.hidden = true;
    zone.hidden = false;
    part("waits").hidden = true;
    say(reason);
  };

  part("cancel").addEventListener("click", async () => {
    if (!sending) return;
    const { id, request } = sending;
    sending.cancelled = true;
    if (request) request.abort();
    if (id) await json("POST", `${api}${id}/cancel/`);
    sending = null;
    location.assign(form.getAttribute("action"));
  });

  const chosen = (event) =>
    send([...event.target.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
  form.querySelector("#files").addEventListener("change", chosen);
  form.querySelector("#folder").addEventListener("change", chosen);
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) zone.classList.remove("over");
  });
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    try {
      await send(await dropped(event.dataTransfer));
    } catch {
      stop("What was dropped cannot be read. Choose the files instead.");
    }
  });
  window.addEventListener("beforeunload", (event) => {
    if (sending && !sending.cancelled) event.preventDefault();
  });
})();
