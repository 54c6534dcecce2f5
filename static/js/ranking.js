"use strict";
// Ranking: cards in a list, best first. Keys (Space lifts, arrows move, Escape puts back, digits place), buttons, and
// dragging by mouse, pen or finger. The form holds the place of each answer.
(() => {
  const list = () => document.querySelector("#work .ranklist");
  const cards = (inside = list()) => [...inside.querySelectorAll(":scope > .rk")];
  const tied = (card) => card.querySelector("[data-tie]")?.getAttribute("aria-pressed") === "true";
  const changed = () => list().dispatchEvent(new CustomEvent("ranked", { bubbles: true }));
  let lifted = null,
    before = []; // the card in hand, and the order to go back to

  // Numbers, the order line and the form's fields, from how the cards stand.
  const write = () => {
    let place = 0;
    const line = document.querySelector("#work [data-order]"),
      shown = [];
    cards().forEach((card, index) => {
      const button = card.querySelector("[data-tie]");
      if (button) {
        button.hidden = index === 0;
        if (index === 0) button.setAttribute("aria-pressed", "false");
      }
      if (!tied(card)) place++;
      card.querySelector(".pos").textContent = place;
      card.classList.toggle("same", tied(card));
      card.setAttribute(
        "aria-label",
        window.words("Answer {name}, place {place} of {count}", {
          name: card.dataset.name,
          place,
          count: cards().length,
        }),
      );
      if (list().dataset.touched) card.querySelector(".place input").value = place;
      card.querySelector('[data-move="-1"]').disabled = index === 0;
      card.querySelector('[data-move="1"]').disabled = index === cards().length - 1;
      shown.push(
        Object.assign(document.createElement("li"), {
          textContent: card.dataset.name,
          className: tied(card) ? "same" : "",
        }),
      );
    });
    line?.replaceChildren(...shown);
  };
  const arrange = (order) => {
    list().append(...order);
    write();
  };
  const touched = () => {
    list().dataset.touched = "1";
    write();
    changed();
  };
  const say = (card) => {
    document.getElementById("said").textContent = card.getAttribute("aria-label");
  };

  const put = (card, index) => {
    const others = cards().filter((other) => other !== card);
    index = Math.max(0, Math.min(others.length, index));
    const held = document.activeElement;
    list().insertBefore(card, others[index] || null);
    if (card.contains(held)) held.focus({ preventScroll: true });
    card.querySelector("[data-tie]")?.setAttribute("aria-pressed", "false");
    touched();
    card.scrollIntoView({ block: "nearest" });
    say(card);
  };
  const lift = (card) => {
    before = cards();
    lifted = card;
    card.classList.add("lift");
    document.getElementById("said").textContent = window.words(
      "Answer {name} lifted: arrows move it, Space drops it, Escape puts it back",
      { name: card.dataset.name },
    );
  };
  const drop = (back = false) => {
    if (!lifted) return;
    const card = lifted;
    lifted = null;
    card.classList.remove("lift");
    if (back) {
      arrange(before);
      changed();
    }
    card.focus({ preventScroll: true });
    say(card);
  };

  document.addEventListener("keydown", (event) => {
    const card = event.target.closest?.(".rk");
    // From the page itself the arrow down leads to the cards: Tab would pass the picture and its tools first.
    if (event.key === "ArrowDown" && list() && event.target.matches("body, h1")) {
      event.preventDefault();
      cards()[0].focus();
      return;
    }
    if (
      !card ||
      !list()?.contains(card) ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.target.matches("input, textarea")
    )
      return;
    const at = cards().indexOf(card),
      own = event.target === card;
    const take = () => {
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    if (event.key === " " && own) {
      take();
      if (lifted === card) drop();
      else {
        drop();
        lift(card);
      }
    } else if (event.key === "Escape" && lifted) {
      take();
      drop(true);
    } else if (event.key === "Enter" && lifted) {
      take();
      drop();
    } else if (["ArrowUp", "ArrowDown"].includes(event.key) && own) {
      take();
      const by = event.key === "ArrowUp" ? -1 : 1;
      if (lifted === card) put(card, at + by);
      else cards()[at + by]?.focus();
    } else if (event.key === "=" && own && card.querySelector("[data-tie]:not([hidden])")) {
      take();
      card.querySelector("[data-tie]").click();
    }
  });
  document.addEventListener("click", (event) => {
    const card = event.target.closest(".rk");
    if (!card) return;
    const move = event.target.closest("[data-move]");
    if (move) {
      put(card, cards().indexOf(card) + Number(move.dataset.move));
      (move.disabled ? card : move).focus({ preventScroll: true });
    }
    const tie = event.target.closest("[data-tie]");
    if (tie) {
      tie.setAttribute("aria-pressed", String(tie.getAttribute("aria-pressed") !== "true"));
      touched();
      say(card);
    }
  });

  // Dragging: the card goes to where the pointer is among the others. Pointer events: mouse, pen and finger alike.
  let drag = null;
  document.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest?.(".grip");
    if (!grip || event.button) return;
    event.preventDefault();
    drop();
    const card = grip.closest(".rk");
    grip.setPointerCapture(event.pointerId);
    drag = { card, pointer: event.pointerId, order: cards() };
    card.classList.add("lift");
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    const { card } = drag,
      box = list(),
      area = box.getBoundingClientRect(),
      y = event.clientY;
    const others = cards().filter((other) => other !== card);
    const index = others.filter((other) => {
      const r = other.getBoundingClientRect();
      return y > r.top + r.height / 2;
    }).length;
    if (cards().indexOf(card) !== index) {
      box.insertBefore(card, others[index] || null);
      drag.moved = true;
      write();
    }
    if (y < area.top + 40) box.scrollTop -= 12;
    else if (y > area.bottom - 40) box.scrollTop += 12;
  });
  const end = (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    const { card, order, moved } = drag;
    drag = null;
    card.classList.remove("lift");
    if (event.type === "pointercancel") {
      arrange(order);
      return;
    }
    if (moved) card.querySelector("[data-tie]")?.setAttribute("aria-pressed", "false");
    touched();
    say(card);
  };
  document.addEventListener("pointerup", end);
  document.addEventListener("pointercancel", end);

  window.ranking = {
    // A new item, or values that a draft brought: the cards stand as the fields say.
    begin() {
      if (!list()) return;
      lifted = drag = null;
      const place = (card) => Number(card.querySelector(".place input").value) || 0;
      const order = cards().map((card, index) => ({ card, place: place(card), index }));
      if (order.every((one) => one.place)) {
        order.sort((a, b) => a.place - b.place || a.index - b.index);
        order.forEach((one, index) =>
          one.card
            .querySelector("[data-tie]")
            ?.setAttribute("aria-pressed", String(index > 0 && order[index - 1].place === one.place)),
        );
        list().dataset.touched = "1";
        list().append(...order.map((one) => one.card));
      }
      write();
    },
    // A digit places the card that has the focus, else the one on top.
    place(number) {
      const card = document.activeElement?.closest?.("#work .rk") || cards()[0];
      if (!card || number < 1 || number > cards().length) return false;
      put(card, number - 1);
      drop();
      card.focus({ preventScroll: true });
      return true;
    },
    // The order as it was shown needs a second word.
    get untouched() {
      return Boolean(list()) && !list().dataset.touched;
    },
    confirm() {
      list().dataset.touched = "1";
      write();
    },
  };
})();
