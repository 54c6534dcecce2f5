"use strict";
// Labels on their way: kept in this browser until the server has them, sent in order, each once.
// The server knows a label by its key, so that sending again after a lost reply stores nothing twice.
(() => {
  const WAIT = [1000, 2000, 4000, 8000, 15000, 30000];

  const cookie = (name) =>
    document.cookie
      .split("; ")
      .find((pair) => pair.startsWith(`${name}=`))
      ?.slice(name.length + 1) || "";

  // Posts a form. Answers {ok, status, data}; status 0: no network or no server, 401: signed out.
  window.post = async (url, body, { keepalive = false, accept = "application/json" } = {}) => {
    try {
      const response = await fetch(url, {
        method: "POST",
        body,
        keepalive,
        redirect: "manual",
        credentials: "same-origin",
        signal: AbortSignal.timeout(20000),
        headers: { "HX-Request": "true", "X-CSRFToken": cookie("csrftoken"), Accept: accept },
      });
      if (response.type === "opaqueredirect") return { ok: false, status: 401, data: {} };
      if (response.status >= 500 || response.status === 429) return { ok: false, status: 0, data: {} };
      const json = (response.headers.get("Content-Type") || "").includes("json");
      if (!response.ok && !json)
        return { ok: false, status: response.status === 403 ? 401 : response.status, data: {} };
      return { ok: response.ok, status: response.status, data: json ? await response.json() : await response.text() };
    } catch {
      return { ok: false, status: 0, data: {} };
    }
  };

  // One queue a person and browser; tabs share it.
  window.Unsent = class {
    constructor(me, { changed, refused }) {
      Object.assign(this, {
        name: `evalsite-unsent-${me}`,
        changed,
        refused,
        failures: 0,
        state: "",
        busy: null,
        timer: 0,
        waiting: new Map(),
      });
      addEventListener("online", () => this.send());
      this.memory = []; // where the browser lets nothing be stored
      addEventListener("storage", (event) => {
        if (event.key === this.name) this.sentElsewhere();
      });
    }

    all() {
      try {
        return JSON.parse(localStorage.getItem(this.name)) || this.memory;
      } catch {
        return this.memory;
      }
    }
    keep(entries) {
      this.memory = [];
      try {
        localStorage.setItem(this.name, JSON.stringify(entries));
      } catch {
        this.memory = entries;
      }
      this.changed(entries, this.state);
    }
    remove(key) {
      this.keep(this.all().filter((entry) => entry.key !== key));
    }
    has(assignment) {
      return this.all().some((entry) => entry.assignment === assignment);
    }

    // Keeps the entry {key, url, body, assignment} and sends it; resolves to the server's answer when it has one.
    add(entry) {
      const answer = new Promise((resolve) => this.waiting.set(entry.key, resolve));
      this.keep([...this.all().filter((other) => other.key !== entry.key), entry]);
      this.send();
      return answer;
    }

    // Another tab took what this one waits for.
    sentElsewhere() {
      const left = this.all();
      for (const [key, resolve] of this.waiting) {
        if (!left.some((entry) => entry.key === key)) {
          this.waiting.delete(key);
          resolve({ ok: true, status: 200, data: {} });
        }
      }
      this.changed(left, this.state);
    }

    send() {
      clearTimeout(this.timer);
      if (!this.all().length) return Promise.resolve();
      const locked = (work) => (navigator.locks ? navigator.locks.request(this.name, work) : work());
      this.busy ||= locked(() => this.drain()).finally(() => {
        this.busy = null;
        if (this.all().length && !this.state) this.send();
      });
      return this.busy;
    }

    async drain() {
      for (let entry; (entry = this.all()[0]);) {
        const answer = await window.post(entry.url, new URLSearchParams(entry.body));
        if (answer.status === 0 || answer.status === 401) {
          this.state = answer.status ? "signed-out" : "offline";
          this.changed(this.all(), this.state);
          this.timer = setTimeout(() => this.send(), WAIT[Math.min(this.failures++, WAIT.length - 1)]);
          return;
        }
        this.failures = 0;
        this.state = "";
        this.remove(entry.key);
        if (!answer.ok) this.refused(entry, answer);
        this.waiting.get(entry.key)?.(answer);
        this.waiting.delete(entry.key);
      }
    }
  };
})();
