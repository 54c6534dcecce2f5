"use strict";
// The labelling page: keys, drafts, the next item at hand, labels that wait for the network. Without this script the
// page is a form.
(() => {
  const DRAFT_AFTER = 600; // milliseconds without a change
  const IDLE_AFTER = 60000; // milliseconds without a sign of life: reading counts, lunch does not
  const SECOND_STROKE = 400; // milliseconds in which Enter is meant for the item that has just gone
  const AT_ONCE_AFTER = 500; // milliseconds to think again, where the choice submits by itself
  const SLOW_AFTER = 1500; // milliseconds on the way after which it is said
  const TOAST_FOR = 7000;
  const SHORT = 300; // seconds of the time for an item from which on it is shown, as in queries.py
  const FEWEST_PACED = 5; // labels that make a pace, as there

  const t = window.words;
  const root = () => document.getElementById("work");
  const form = () => document.getElementById("ballot");
  const say = (words) => {
    document.getElementById("said").textContent = words;
  };
  const find = (selector) => root().querySelector(selector);
  const remember = {
    get: (name) => {
      try {
        return localStorage.getItem(`evalsite-${name}`);
      } catch {
        return null;
      }
    },
    set: (name, value) => {
      try {
        localStorage.setItem(`evalsite-${name}`, value);
      } catch {
        /* only a preference or a copy */
      }
    },
    drop: (name) => {
      try {
        localStorage.removeItem(`evalsite-${name}`);
      } catch {
        /* nothing was kept */
      }
    },
  };

  let ahead = null; // the next item, drawn and waiting
  let fetchingAhead = false;
  let held = ""; // the assignment whose label has been on its way for long, with no next item at hand
  let shownAt = 0,
    sentAt = 0;
  let leaving = 0; // counts page changes, so that a late answer does not act on another item
  const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  // ---- what the queue says

  const unsent = new window.Unsent(root().dataset.me, {
    changed: (entries, state) => {
      chip(entries.length, state);
      if (state) document.querySelector("#toasts [aria-keyshortcuts]")?.closest(".snack").remove(); // not sent after all
      if (held) tellHeld();
    },
    refused: (entry, answer) => {
      const words = answer.data.error || t("The server did not take it. Load the item again and look.");
      if (root().dataset.assignment === entry.assignment) {
        busy(false);
        notice(words, answer.data.code);
        return;
      }
      keepHere(entry.assignment, entry.body);
      toast(`${t("A label was not stored.")} ${words}`, t("Show it"), () => go(entry.here), { stays: true });
    },
  });
  const chip = (count, state) => {
    const element = document.getElementById("unsent");
    if (!element) return;
    element.hidden = !(count && state);
    const text = element.querySelector("span");
    text.textContent =
      state === "signed-out"
        ? t("Signed out, {count} saved here", { count })
        : t("Offline, {count} saved here", { count });
    if (state === "signed-out") {
      const link = Object.assign(document.createElement("a"), {
        href: "/accounts/sign-in/",
        target: "_blank",
        textContent: t("Sign in"),
      });
      text.append(". ", link);
    }
  };

  // ---- notices and toasts

  const notice = (words, code = "", kind = "bad") => {
    const element = document.getElementById("notice");
    if (!element) return;
    const text = element.querySelector("span");
    text.textContent = words;
    element.className = `notice ${kind}`;
    const link = (label, href) => {
      const anchor = Object.assign(document.createElement("a"), { href, textContent: label });
      text.append(" ", anchor);
    };
    if (["already-labelled", "stale-edit"].includes(code)) link(t("Show what is stored."), root().dataset.here);
    if (["already-labelled", "slot-taken", "not-open", "lease"].includes(code))
      link(t("Go on to the next item."), root().dataset.work);
    element.hidden = false;
  };
  const clearNotice = () => {
    const element = document.getElementById("notice");
    if (element) element.hidden = true;
  };

  // Slow is not offline: only a request that failed, or the browser itself, says that there is no network.
  const tellHeld = () => {
    if (root().dataset.assignment !== held) return;
    const waits = unsent.has(held);
    if (waits && unsent.state === "signed-out")
      notice(t("You are signed out. Your label is kept here and sent when you are back."), "", "warn");
    else if (waits && (unsent.state || !navigator.onLine))
      notice(t("No network. Your label is kept here and sent when it is back; the next item comes then."), "", "warn");
    else notice(t("Still sending. The next item comes as soon as the server has answered."), "", "warn");
  };
  // What is pressed meanwhile is not kept: it would meet an item that nobody has seen.
  const sending = () => {
    if (!form().hasAttribute("aria-busy")) return false;
    if (Date.now() - sentAt > SECOND_STROKE) {
      held = root().dataset.assignment;
      tellHeld();
    }
    return true;
  };

  // A place of their own in the bar of the verdict, so that they cover nothing; it comes with every item.
  const toasts = document.getElementById("toasts");
  const seatToasts = () => (find("[data-toasts]") || document.body).append(toasts);
  let toastTimer = 0;
  const toast = (words, action, act, { stays = false, keys = "" } = {}) => {
    const snack = document.createElement("div");
    snack.className = "snack";
    snack.append(Object.assign(document.createElement("span"), { textContent: words }));
    if (action) {
      const button = Object.assign(document.createElement("button"), {
        className: "btn ghost sm",
        type: "button",
        textContent: action,
      });
      if (keys) button.setAttribute("aria-keyshortcuts", keys);
      button.addEventListener("click", () => {
        snack.remove();
        act();
      });
      snack.append(button);
    }
    toasts.replaceChildren(snack);
    say(words);
    clearTimeout(toastTimer);
    if (!stays) toastTimer = setTimeout(() => snack.remove(), TOAST_FOR);
  };

  // ---- time: spent on the item, and left of the lease

  let spent = 0,
    lastSign = Date.now(),
    lastTick = Date.now();
  for (const sign of ["pointermove", "pointerdown", "keydown", "wheel", "scroll", "touchstart"]) {
    addEventListener(
      sign,
      () => {
        lastSign = Date.now();
      },
      { passive: true, capture: true },
    );
  }
  const tick = () => {
    const now = Date.now();
    if (!document.hidden && now - lastSign < IDLE_AFTER) spent += Math.min(now - lastTick, 2000) / 1000;
    lastTick = now;
    const lease = document.getElementById("lease");
    if (!lease || !root().dataset.leaseUntil || "expired" in root().dataset) return;
    const left = Math.max(0, Math.floor((new Date(root().dataset.leaseUntil) - now) / 1000));
    lease.hidden = left >= SHORT;
    lease.querySelector("b").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    lease.classList.toggle("ending", left < 120);
    if (!left) {
      root().dataset.expired = "";
      notice(
        t(
          "The time for this item is over. What you typed is kept: you can still submit it while nobody else has taken the item.",
        ),
        "lease",
        "warn",
      );
    }
  };
  setInterval(tick, 1000);

  // ---- the form

  const chosen = () => form()?.elements.choice?.value || "";
  const body = () => {
    tick();
    form().elements.seconds.value = spent.toFixed(1);
    return [...new FormData(form())].filter(([name]) => name !== "csrfmiddlewaretoken");
  };
  const BESIDE = ["key", "seconds", "editing", "seen", "csrfmiddlewaretoken"];
  const fill = (entries) => {
    const left = new Map();
    for (const [name, value] of entries) left.set(name, [...(left.get(name) || []), value]);
    for (const input of form().elements) {
      if (!input.name || BESIDE.includes(input.name)) continue;
      if (["radio", "checkbox"].includes(input.type))
        input.checked = (left.get(input.name) || []).includes(input.value);
      else input.value = left.get(input.name)?.shift() ?? "";
    }
    spent = Math.max(spent, Number(left.get("seconds")?.[0]) || 0);
  };
  const busy = (on) => {
    if (!form()) return;
    form().toggleAttribute("aria-busy", on);
    for (const button of form().querySelectorAll("button[type=submit]")) button.disabled = on;
  };

  let atOnce = 0;
  const choose = (input) => {
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    say(input.ariaLabel || input.closest("label").innerText);
  };
  const undecide = () => {
    for (const input of form().querySelectorAll("input[name=choice], input[name=situation]")) input.checked = false;
    drafted();
    find("input[name=choice]").focus({ preventScroll: true });
  };

  // The questions that are asked now, and the one that a key answers: where the focus is, else the first left open.
  const groups = () =>
    [...(form()?.querySelectorAll("[data-group]") || [])].filter((group) => group.getClientRects().length);
  const open = (group) => !group.querySelector("input:checked");
  const why = () => form()?.querySelector("textarea[required]");
  const atHand = () =>
    groups().find((group) => group.contains(document.activeElement)) || groups().find(open) || groups().at(-1);
  const pick = (name) => {
    const input = atHand()?.querySelector(`[data-key="${name}"]`);
    if (input) choose(input);
    if (input && why() && !why().value) why().focus({ preventScroll: true });
    return Boolean(input);
  };
  const letter = (name) => {
    const input = atHand()?.querySelector(`[data-letter="${name}"]`);
    if (input) choose(input);
  };
  const digit = (number) => {
    const shape = root().dataset.shape;
    if (shape === "ranking") window.ranking.place(number);
    else if (shape === "components") window.points.digit(number);
    else pick(ORDINALS[(number + 9) % 10]);
  };

  // Nobody is to judge what they cannot see: a picture that did not come is asked for again.
  const unseen = () => {
    const broken = [...root().querySelectorAll("img")].filter((image) => image.complete && !image.naturalWidth);
    for (const image of broken) image.src = image.src; // eslint-disable-line no-self-assign
    return broken.length ? t("A picture has not come. It is asked for again: label when it is here.") : "";
  };

  const missing = () => {
    const group = groups().find(open);
    if (group) {
      const keys = [...group.querySelectorAll("[data-key]")].map((input) => bound[input.dataset.key].toUpperCase());
      return keys.length > 1
        ? `${group.dataset.missing}: ${keys.slice(0, -1).join(", ")} ${t("or")} ${keys.at(-1)}.`
        : `${group.dataset.missing}.`;
    }
    if (why() && !why().value.trim()) return `${why().dataset.missing}.`;
    if (root().dataset.shape === "components") return window.points.missing();
    return root().dataset.shape === "review" ? window.spans.missing() : "";
  };

  const submit = () => {
    clearTimeout(atOnce);
    if (!form() || sending()) return;
    const wanting = missing() || unseen();
    if (wanting) {
      if (Date.now() - shownAt > SECOND_STROKE) notice(wanting, "", "warn");
      return;
    }
    if (window.ranking.untouched) {
      window.ranking.confirm();
      notice(t("You have not changed the order. Submit once more if it is right as it stands."), "", "warn");
      return;
    }
    clearNotice();
    const { assignment, here } = root().dataset,
      editing = "editing" in root().dataset;
    const key = editing ? `update-${assignment}-${Date.now()}` : form().elements.key.value;
    depart({ key, url: form().action, body: body(), assignment, here }, editing ? t("Updated") : t("Submitted"), {
      counts: !editing,
      editing,
    });
  };
  const skip = () => {
    if (!form() || "editing" in root().dataset || sending()) return;
    const { assignment, here } = root().dataset;
    const url = form().querySelector("[data-skip]").formAction;
    depart({ key: `skip-${assignment}-${Date.now()}`, url, body: body(), assignment, here }, t("Skipped"), {
      counts: false,
      undo: takeBack,
    });
  };
  // Asks for a skipped item again, with what was chosen and typed.
  const takeBack = async ({ url, assignment, here, body }) => {
    await unsent.send();
    const { ok, data } = await window.post(url, new URLSearchParams({ undo: "1" }));
    keepHere(assignment, body);
    await go(here);
    if (ok) toast(t("The item is yours again, with its whole time."));
    else if (data.error) notice(data.error, data.code);
  };

  // Sends what was decided and goes on: to the item at hand at once, else when the server has answered.
  const depart = async (entry, words, { counts, editing = false, undo = () => go(entry.here) }) => {
    clearTimeout(draftTimer);
    drafting?.abort();
    busy(true);
    sentAt = Date.now();
    const took = counts ? spent : null;
    const answer = unsent.add(entry);
    const told = () => {
      if (unsent.state) return; // it is only kept, as the chip says
      toast(words, editing ? "" : t("Undo"), () => undo(entry), { keys: "Control+Z" });
    };
    if (ahead && !editing) {
      const next = ahead;
      ahead = null;
      forgetHere(entry.assignment);
      carryOver(next, took, counts ? entry.here : null);
      swap(next);
      told();
      const { ok, data } = await answer;
      if (ok && data.lease_until && root() === next) next.dataset.leaseUntil = data.lease_until;
      getAhead();
      return;
    }
    const waiting = setTimeout(() => {
      held = entry.assignment;
      tellHeld();
    }, SLOW_AFTER);
    const { ok } = await answer;
    clearTimeout(waiting);
    if (!ok) {
      held = "";
      return;
    }
    forgetHere(entry.assignment);
    await go(root().dataset.work, { push: editing });
    told();
  };

  // ---- drafts

  let draftTimer = 0,
    drafting = null;
  const localName = (assignment) => `draft-${root().dataset.me}-${assignment}`;
  const keepHere = (assignment, entries) => remember.set(localName(assignment), JSON.stringify(entries));
  const forgetHere = (assignment) => remember.drop(localName(assignment));
  const drafted = () => {
    clearNotice();
    keepHere(root().dataset.assignment, body());
    clearTimeout(draftTimer);
    draftTimer = setTimeout(saveDraft, DRAFT_AFTER);
  };
  const saveDraft = async ({ keepalive = false } = {}) => {
    clearTimeout(draftTimer);
    draftTimer = 0;
    if (!form() || form().hasAttribute("aria-busy")) return;
    const { assignment, draft } = root().dataset,
      kept = body(),
      turn = leaving;
    drafting = new AbortController();
    const { signal } = drafting;
    const answer = await window.post(draft, new URLSearchParams(kept), { keepalive });
    if (signal.aborted || turn !== leaving || root().dataset.assignment !== assignment) return;
    const saved = find("[data-saved]");
    if (answer.ok) {
      if (!draftTimer) forgetHere(assignment);
      if (saved) {
        saved.hidden = false;
        saved.querySelector("[data-minute]").textContent = minute.format(new Date(answer.data.saved));
      }
    } else if (answer.status === 409 || answer.status === 400) notice(answer.data.error, answer.data.code);
    else {
      chip(Math.max(1, unsent.all().length), answer.status === 401 ? "signed-out" : "offline");
      draftTimer = setTimeout(saveDraft, 5000);
    }
  };
  addEventListener("pagehide", () => {
    if (draftTimer) saveDraft({ keepalive: true });
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && draftTimer) saveDraft({ keepalive: true });
  });

  // ---- items in and out

  const parsed = (html) =>
    document.adoptNode(new DOMParser().parseFromString(html, "text/html").getElementById("work"));
  const prepare = (node) => {
    for (const image of node.querySelectorAll(".pic img")) new Image().src = image.getAttribute("src");
    return window.drawTex(node);
  };
  const fetched = async (url) => {
    const response = await fetch(url, {
      headers: { "HX-Request": "true" },
      redirect: "manual",
      credentials: "same-origin",
    });
    if (response.type === "opaqueredirect" || response.status === 403) {
      location.assign(url);
      return null;
    }
    if (!response.ok) throw new Error(String(response.status));
    return parsed(await response.text());
  };

  // Opens another item by its address.
  const go = async (url, { push = true } = {}) => {
    if (!url) return;
    const turn = ++leaving;
    if (draftTimer) await saveDraft();
    await unsent.send();
    let node;
    try {
      node = await fetched(url);
    } catch (error) {
      if (/^\d+$/.test(error.message)) location.assign(url);
      else {
        toast(t("No network: this needs it. Try again in a moment."));
        leaving = turn;
        busy(false);
      }
      return;
    }
    if (!node || turn !== leaving) return;
    ahead = null;
    if (push && location.pathname !== new URL(url, location).pathname) history.pushState(null, "", url);
    swap(node);
    getAhead();
  };
  addEventListener("popstate", () => go(location.pathname, { push: false }));

  const getAhead = async () => {
    if (ahead || fetchingAhead || !form() || "editing" in root().dataset || "expired" in root().dataset) return;
    fetchingAhead = true;
    const { assignment } = root().dataset;
    const answer = await window.post(root().dataset.ahead, "", { accept: "text/html" });
    fetchingAhead = false;
    if (answer.status !== 200 || typeof answer.data !== "string") return;
    const node = parsed(answer.data);
    if (root().dataset.assignment !== assignment) return getAhead();
    if (!node?.dataset.assignment || node.dataset.assignment === assignment || unsent.has(node.dataset.assignment))
      return;
    await prepare(node);
    if (root().dataset.assignment === assignment) ahead = node;
  };

  // The item that was fetched ahead knows nothing of the count; the page it comes into does.
  const carryOver = (node, took, back) => {
    const { total, pace } = root().dataset;
    const done = Number(root().dataset.done) + (took === null ? 0 : 1);
    times.push(...(took === null ? [] : [took]));
    const usual = pace
      ? pace * 0.95 + (took ?? pace) * 0.05
      : times.length >= FEWEST_PACED
        ? times.reduce((a, b) => a + b) / times.length
        : "";
    Object.assign(node.dataset, { done, total, pace: usual });
    const written = (number) => Number(number).toLocaleString("en"); // as the server writes them
    node.querySelector("[data-done-shown]").textContent = written(done);
    node.querySelector("[data-total-shown]").textContent = written(total);
    node.querySelector("[data-number]").textContent = t("{number} of {total}", {
      number: written(done + 1),
      total: written(total),
    });
    node.querySelector(".meter").setAttribute("viewBox", `0 0 ${total > 0 ? total : 1} 1`);
    node.querySelector(".meter .v").setAttribute("width", done);
    const link = node.querySelector('[data-go="back"]'),
      target = back || root().dataset.back;
    if (target) {
      link.href = target;
      link.removeAttribute("aria-disabled");
      link.removeAttribute("role");
      node.dataset.back = target;
    }
  };
  const times = [];
  const inWords = (pace, left) => {
    const minutes = Math.ceil((left * pace) / 60),
      hours = Math.floor(minutes / 60);
    const each =
      pace < 120
        ? t("{seconds} s per item", { seconds: Math.max(1, Math.round(pace)) })
        : t("{minutes} min per item", { minutes: (pace / 60).toFixed(1) });
    if (minutes <= 0) return each;
    return `${each}, ${hours ? t("about {hours} h {minutes} min to go", { hours, minutes: minutes % 60 }) : t("about {minutes} min to go", { minutes })}`;
  };

  const swap = (node) => {
    leaving++;
    root().replaceWith(node);
    begin();
    node.querySelector("h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  };

  // A new item stands in the page.
  const begin = () => {
    held = "";
    shownAt = Date.now();
    spent = Number(root().dataset.seconds) || 0;
    lastSign = lastTick = Date.now();
    clearTimeout(draftTimer);
    draftTimer = 0;
    const { pace, total, done } = root().dataset;
    root().querySelector(".pace").textContent = Number(pace) ? inWords(pace, total - done) : "";
    for (const element of root().querySelectorAll("[data-minute]")) {
      const at = new Date(element.dataset.minute);
      if (!isNaN(at)) element.textContent = minute.format(at);
    }
    chip(unsent.all().length, unsent.state);
    seatToasts();
    showCaps();
    window.drawTex(root()).then(reachable);
    reachable();
    if (!form()) return;
    form().noValidate = true;
    const kept = remember.get(localName(root().dataset.assignment));
    if (kept && !unsent.has(root().dataset.assignment)) {
      try {
        fill(JSON.parse(kept));
        draftTimer = setTimeout(saveDraft, DRAFT_AFTER);
      } catch {
        forgetHere(root().dataset.assignment);
      }
    }
    window.ranking.begin();
    window.points.begin();
    window.spans.begin();
    together(remember.get("scroll") !== "apart");
  };

  // What scrolls can be reached by Tab, and only that.
  const reachable = () => {
    for (const button of root().querySelectorAll("[data-fold]")) {
      const text = button.closest(".answer, .txt").querySelector(".reply:not([hidden])");
      if (button.getAttribute("aria-expanded") === "false")
        button.hidden = getComputedStyle(text).maxHeight === "none" || text.scrollHeight <= text.clientHeight + 2;
    }
    for (const box of root().querySelectorAll(
      ".ask, .rubric, .rk .reply, .reply .scroll, .reply pre, .tex[data-display]",
    )) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };

  // ---- answers: scroll together, raw text

  let inStep = true,
    leader = null;
  const together = (on) => {
    inStep = on;
    for (const button of root().querySelectorAll("[data-scroll]"))
      button.setAttribute("aria-pressed", String((button.dataset.scroll === "together") === on));
  };
  document.addEventListener("pointerover", (event) => {
    leader = event.target.closest?.(".reply") || leader;
  });
  document.addEventListener("focusin", (event) => {
    leader = event.target.closest?.(".reply") || leader;
  });
  document.addEventListener(
    "scroll",
    (event) => {
      const box = event.target;
      if (!inStep || !box.matches?.(".answer > .reply") || (leader && leader !== box)) return;
      const share = box.scrollTop / Math.max(1, box.scrollHeight - box.clientHeight);
      for (const other of root().querySelectorAll(".answer > .reply:not([hidden])")) {
        if (other !== box) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      }
    },
    true,
  );
  const raw = (button) => {
    const on = button.getAttribute("aria-pressed") !== "true",
      answer = button.closest(".answer, .rk");
    const source = answer.querySelector("[data-rawtext]");
    if (!source) return;
    button.setAttribute("aria-pressed", String(on));
    source.hidden = !on;
    answer.querySelector(".reply:not([data-rawtext])").hidden = on;
  };

  // ---- clicks and changes

  const closePops = (except = null) => {
    for (const pop of root().querySelectorAll("details.pop[open]")) if (pop !== except) pop.open = false;
  };
  const openPop = (name) => {
    const pop = find(`[data-pop=${name}]`);
    if (!pop) return find(`#${name}`)?.focus(); // a reason that is always asked for
    closePops(pop);
    pop.open = !pop.open;
    if (pop.open) pop.querySelector("textarea, input").focus();
  };

  document.addEventListener("click", (event) => {
    const target = event.target;
    const anchor = target.closest("a[data-go], #notice a");
    if (anchor && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      go(anchor.href);
      return;
    }
    const scroll = target.closest("[data-scroll]");
    if (scroll) {
      together(scroll.dataset.scroll === "together");
      remember.set("scroll", scroll.dataset.scroll);
    }
    const source = target.closest("[data-raw]");
    if (source) raw(source);
    if (target.closest("[data-undecide]")) undecide();
    const fold = target.closest("[data-fold]");
    if (fold) {
      const all = fold.getAttribute("aria-expanded") !== "true";
      fold.setAttribute("aria-expanded", String(all));
      fold.closest(".answer, .rk").classList.toggle("whole", all);
      fold.textContent = all ? t("Fold it") : t("Show all of it");
    }
    closePops(target.closest("details.pop"));
  });
  document.addEventListener("submit", (event) => {
    if (event.target !== form()) return;
    event.preventDefault();
    if (event.submitter?.matches("[data-skip]")) skip();
    else submit();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("#comment, input[name=points], .place input")) drafted();
  });
  document.addEventListener("ranked", () => drafted());
  document.addEventListener("change", (event) => {
    const input = event.target;
    if (input.id === "at-once") {
      keepSettings({ at_once: input.checked ? "1" : "" });
      return;
    }
    if (input.form !== form() || input.matches("#comment, input[name=points], .place input")) return;
    const group = input.closest("[data-group]");
    if (group && groups().length > 1) groups().find(open)?.querySelector("input").focus({ preventScroll: true });
    if (input.name === "choice") {
      for (const other of form().querySelectorAll("input[name=situation]")) other.checked = false;
      if (input.value === "undecided") find("input[name=situation]")?.focus({ preventScroll: true });
    }
    drafted();
    clearTimeout(atOnce);
    if (
      document.getElementById("at-once").checked &&
      input.type === "radio" &&
      !missing() &&
      !("editing" in root().dataset)
    )
      atOnce = setTimeout(submit, AT_ONCE_AFTER);
  });
  for (const drawer of document.querySelectorAll(".drawer")) {
    drawer.addEventListener("toggle", (event) => {
      if (event.newState === "open") drawer.focus();
    });
  }

  // ---- keys

  const drawer = (id) => document.getElementById(id).togglePopover();
  const viewer = () => document.querySelector("#lightbox[open] [data-viewer]") || find("[data-viewer]");
  const back = () => go(root().dataset.back || find('[data-go="back"][href]')?.href);
  const escape = () => {
    clearTimeout(atOnce);
    if (document.querySelector(".drawer:popover-open")) return; // the browser closes it
    if (find("details.pop[open]")) return closePops();
    if (chosen() === "undecided") return undecide();
    const at = groups().findIndex((group) => group.contains(document.activeElement));
    if (at > 0) groups()[at - 1].querySelector("input:checked, input").focus({ preventScroll: true });
  };
  // What each key does. The first group can be given other keys, on this browser, in the help.
  const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tie"];
  const USUAL = {
    ...Object.fromEntries(ORDINALS.map((name, index) => [name, String((index + 1) % 10)])),
    undecided: "u",
    skip: "s",
    flag: "f",
    comment: "c",
    guidelines: "g",
    help: "h",
    zoom: "z",
    turn: "r",
    both: "b",
    mark: "m",
    whole: "a",
  };
  const DO = {
    ...Object.fromEntries(ORDINALS.map((name, index) => [name, () => digit((index + 1) % 10)])),
    undecided: () => pick("undecided"),
    skip,
    flag: () => openPop("flag"),
    comment: () => openPop("comment"),
    guidelines: () => drawer("guidelines"),
    help: () => drawer("help"),
    zoom: () => {
      if (viewer()) window.viewer.toggle(viewer());
    },
    turn: () => {
      if (viewer()) window.viewer.turn(viewer());
    },
    both: () => {
      if (find("[data-viewer]")) window.viewer.both(find("[data-viewer]"));
    },
    mark: () => {
      if (find("[data-analysis]") && !window.spans.mark())
        notice(t("Select the passage with Shift and the arrow keys, then press M."), "", "warn");
    },
    // The card in focus, else every answer that is cut.
    whole: () => {
      const card = document.activeElement.closest("#work .rk");
      for (const fold of (card || root()).querySelectorAll("[data-fold]:not([hidden])")) fold.click();
    },
  };
  const FIXED = {
    t: () => letter("t"),
    y: () => letter("y"),
    n: () => letter("n"),
    "?": DO.help,
    enter: () => {
      if (form()) submit();
      else if (Date.now() - shownAt > SECOND_STROKE) find("main .btn.primary")?.click();
    },
    arrowleft: back,
    escape,
    "+": () => {
      if (viewer()) window.viewer.zoom(viewer(), 1.5);
    },
    "=": () => FIXED["+"](),
    "-": () => {
      if (viewer()) window.viewer.zoom(viewer(), 1 / 1.5);
    },
    ",": () => {
      if (find("[data-viewer]")) window.viewer.step(find("[data-viewer]"), -1);
    },
    ".": () => {
      if (find("[data-viewer]")) window.viewer.step(find("[data-viewer]"), 1);
    },
  };
  let bound = { ...USUAL };
  try {
    bound = { ...USUAL, ...JSON.parse(document.getElementById("my-keys").textContent) };
  } catch {
    /* the usual keys, then */
  }
  // Kept with the person, so that they are the same on every device.
  const keepSettings = (values) => window.post("/accounts/settings/", new URLSearchParams(values), { keepalive: true });
  const keepKeys = () =>
    keepSettings({
      keys: JSON.stringify(Object.fromEntries(Object.entries(bound).filter(([name, key]) => USUAL[name] !== key))),
    });
  const acts = (key) => {
    const name = Object.keys(bound).find((each) => bound[each] === key);
    return name ? DO[name] : FIXED[key];
  };
  const showCaps = () => {
    for (const cap of document.querySelectorAll("[data-cap]")) {
      cap.textContent = bound[cap.dataset.cap].toUpperCase();
      const holder = cap.closest("label, summary, button");
      const target = holder?.querySelector("input") || holder;
      cap.toggleAttribute("data-same", target?.value === cap.textContent);
      if (target?.hasAttribute("aria-keyshortcuts"))
        target.setAttribute("aria-keyshortcuts", bound[cap.dataset.cap].toUpperCase());
    }
    for (const cap of document.querySelectorAll("[data-rebind]"))
      cap.setAttribute(
        "aria-label",
        t("Another key for {name}, now {key}", {
          name: nameOf(cap.dataset.rebind),
          key: bound[cap.dataset.rebind].toUpperCase(),
        }),
      );
  };
  let rebinding = null;
  const nameOf = (name) => document.querySelector(`[data-rebind="${name}"]`)?.dataset.what || name;
  const rebound = (words) => {
    rebinding = null;
    document.getElementById("rebinding").firstChild.textContent = `${words} `;
    showCaps();
  };
  const rebind = (key) => {
    const name = rebinding;
    if (key === "escape") return rebound(t("Nothing changed."));
    const other = Object.keys(bound).find((each) => bound[each] === key && each !== name);
    if (key.length !== 1 || key === " " || (FIXED[key] && USUAL[name] !== key))
      return rebound(
        t("{key} is taken. Choose another.", {
          key: key.length === 1 && key !== " " ? key.toUpperCase() : t("That key"),
        }),
      );
    if (other)
      return rebound(t("{key} already means {name}. Choose another.", { key: key.toUpperCase(), name: nameOf(other) }));
    bound[name] = key;
    keepKeys();
    rebound(t("{key} now means {name}.", { key: key.toUpperCase(), name: nameOf(name) }));
  };
  document.addEventListener("click", (event) => {
    const cap = event.target.closest("[data-rebind]");
    if (cap) {
      rebound(t("Press the new key for {name}, or Esc.", { name: nameOf(cap.dataset.rebind) }));
      rebinding = cap.dataset.rebind;
      cap.textContent = "…";
    }
    if (event.target.closest("[data-rebind-none]")) {
      bound = { ...USUAL };
      keepKeys();
      rebound(t("The usual keys are back."));
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    const target = event.target,
      key = event.key.toLowerCase(),
      command = event.ctrlKey || event.metaKey;
    if (rebinding && !command) {
      event.preventDefault();
      rebind(key);
      return;
    }
    const typing = target.matches("textarea, select, [contenteditable], input:not([type=radio]):not([type=checkbox])");
    if (key === "enter" && command) {
      event.preventDefault();
      submit();
      return;
    }
    // In a field for a number, letters are keys, and Enter goes to the next one.
    if (target.matches("input[type=number]") && !command) {
      if (key === "enter") {
        event.preventDefault();
        if (target.name !== "points" || !window.points.next()) submit();
        return;
      }
      if (/^[a-df-z?]$/.test(key) && acts(key)) {
        event.preventDefault();
        acts(key)();
        return;
      }
    }
    if (target.matches("[data-analysis]") && !command) {
      if (key === bound.mark) {
        event.preventDefault();
        DO.mark();
      } else if (key === "enter") {
        event.preventDefault();
        submit();
      } else if (key === "escape") target.blur();
      return;
    }
    if (typing) {
      if (key === "escape") {
        closePops();
        target.blur();
      }
      return;
    }
    if (command) {
      const offered = toasts.querySelector("[aria-keyshortcuts='Control+Z']");
      if (key === "z" && !event.shiftKey && (offered || form())) {
        event.preventDefault();
        if (offered) offered.click();
        else back();
      }
      return;
    }
    if (document.querySelector("#lightbox[open]") && ![bound.zoom, "+", "=", "-"].includes(key)) return;
    // A drawer that has just closed may still hold the focus.
    const where = target.closest(".drawer:not(:popover-open)") ? document.body : target;
    if (["enter", " "].includes(key) && where.closest("button, a[href], summary, .drawer")) return;
    // Arrow keys move within a radio group that was entered by Tab, and scroll what is wider than its box.
    if (
      key === "arrowleft" &&
      (target.matches("input:focus-visible") ||
        target.closest(".drawer") ||
        (target.scrollWidth > target.clientWidth + 1 && target.tabIndex >= 0 && target !== document.body))
    )
      return;
    const act = acts(key);
    if (!act) return;
    if (key !== "escape") event.preventDefault();
    if (!event.repeat || "+-=".includes(key)) act();
  });

  // ---- begin

  begin();
  const pending = unsent.has(root().dataset.assignment);
  unsent.send().then(() => {
    if (pending && !unsent.has(root().dataset.assignment)) go(root().dataset.work, { push: false });
    else getAhead();
  });
  addEventListener("online", getAhead);
})();
