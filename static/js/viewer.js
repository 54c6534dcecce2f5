"use strict";
// Pictures: fit, zoom, pan by drag, wheel, fingers or arrow keys, turn, full screen, several of a sequence, two in sync.
(() => {
  const views = new WeakMap();
  const LARGEST = 12; // times the fitted size

  const viewOf = (box) => {
    if (!views.has(box)) views.set(box, { scale: 1, x: 0, y: 0, turn: 0, fingers: new Map() });
    return views.get(box);
  };
  const pictures = (box) => [...box.querySelectorAll(":scope > a.open > img, :scope > img")];
  const picture = (box) => pictures(box)[0];

  // Size of the picture in its place at fit, in CSS pixels, as it is turned; ``more`` is what turning lets it grow by.
  const fitted = (box, image) => {
    const [width, height] = [image.naturalWidth || 1, image.naturalHeight || 1],
      lying = viewOf(box).turn % 2;
    const upright = Math.min(image.clientWidth / width, image.clientHeight / height);
    const ratio = lying ? Math.min(image.clientWidth / height, image.clientHeight / width) : upright;
    return {
      width: (lying ? height : width) * ratio,
      height: (lying ? width : height) * ratio,
      ratio,
      more: ratio / (upright || 1),
    };
  };

  const draw = (box) => {
    const view = viewOf(box),
      first = picture(box);
    if (!first) return;
    const fit = fitted(box, first);
    const roomX = Math.max(0, (fit.width * view.scale - first.clientWidth) / 2);
    const roomY = Math.max(0, (fit.height * view.scale - first.clientHeight) / 2);
    view.x = Math.min(roomX, Math.max(-roomX, view.x));
    view.y = Math.min(roomY, Math.max(-roomY, view.y));
    for (const image of pictures(box)) {
      const plain = view.scale === 1 && !view.turn;
      image.style.transform = plain
        ? ""
        : `translate(${view.x}px, ${view.y}px) rotate(${90 * view.turn}deg) scale(${view.scale * fitted(box, image).more})`;
    }
    box.classList.toggle("zoomed", view.scale > 1);
    const label = box.querySelector('[data-zoom="fit"]');
    if (label)
      label.textContent =
        view.scale === 1
          ? window.words
            ? window.words("Fit")
            : "Fit"
          : `${Math.round(fit.ratio * view.scale * 100)}%`;
  };

  // Zoom so that the point under (px, py), measured from the middle of the box, stays where it is.
  const zoom = (box, scale, px = 0, py = 0) => {
    const view = viewOf(box),
      before = view.scale;
    view.scale = Math.min(LARGEST, Math.max(1, scale));
    const factor = view.scale / before;
    view.x = px - (px - view.x) * factor;
    view.y = py - (py - view.y) * factor;
    draw(box);
  };
  const fit = (box) => {
    Object.assign(viewOf(box), { scale: 1, x: 0, y: 0 });
    draw(box);
  };
  const turn = (box) => {
    const view = viewOf(box);
    view.turn = (view.turn + 1) % 4;
    fit(box);
  };
  const middle = (box, event) => {
    const area = box.getBoundingClientRect();
    return [event.clientX - area.left - area.width / 2, event.clientY - area.top - area.height / 2];
  };
  // Fit, or as large as the file is, at least twice the fitted size.
  const toggle = (box, px = 0, py = 0) => {
    if (viewOf(box).scale > 1) return fit(box);
    const image = picture(box);
    if (image) zoom(box, Math.max(2, 1 / fitted(box, image).ratio), px, py);
  };

  const links = (box) => [...box.querySelectorAll(".strip a")];
  const fill = (anchor, link) => {
    const image = anchor.querySelector("img");
    image.width = link.dataset.width;
    image.height = link.dataset.height;
    image.alt = link.dataset.picture;
    image.src = anchor.href = link.href;
  };
  const show = (box, link) => {
    for (const other of links(box)) other.toggleAttribute("aria-current", false);
    link.setAttribute("aria-current", "true");
    const [first, second] = box.querySelectorAll(":scope > a.open");
    fill(first, link);
    if (second) fill(second, links(box)[(links(box).indexOf(link) + 1) % links(box).length]);
    viewOf(box).turn = 0;
    fit(box);
  };
  const step = (box, by) => {
    const all = links(box),
      at = all.findIndex((link) => link.hasAttribute("aria-current"));
    if (all.length > 1) show(box, all[(at + by + all.length) % all.length]);
  };
  // A second picture beside the first, the next of the sequence; what moves one moves both.
  const both = (box) => {
    const all = links(box),
      [first, second] = box.querySelectorAll(":scope > a.open");
    if (all.length < 2) return;
    if (second) second.remove();
    else first.after(first.cloneNode(true));
    box.classList.toggle("both", !second);
    box.querySelector('[data-zoom="both"]').setAttribute("aria-pressed", String(!second));
    show(box, all.find((link) => link.hasAttribute("aria-current")) || all[0]);
  };
  const full = (box) => {
    const lightbox = document.getElementById("lightbox");
    if (!lightbox || !picture(box) || lightbox.contains(box)) return;
    const target = lightbox.querySelector("[data-viewer]");
    const shown = pictures(box).map((image) =>
      Object.assign(document.createElement("img"), { src: image.src, alt: image.alt, draggable: false }),
    );
    for (const old of pictures(target)) old.remove();
    target.prepend(...shown);
    target.classList.toggle("both", shown.length > 1);
    lightbox.showModal();
    viewOf(target).turn = viewOf(box).turn;
    fit(target);
    for (const image of shown) image.addEventListener("load", () => draw(target));
  };

  window.viewer = {
    toggle: (box) => toggle(box),
    step,
    turn,
    both,
    zoom: (box, factor) => zoom(box, viewOf(box).scale * factor),
  };

  const boxOf = (event) => event.target.closest?.("[data-viewer]");
  document.addEventListener("click", (event) => {
    const box = boxOf(event);
    if (!box) return;
    const tool = event.target.closest("[data-zoom]"),
      link = event.target.closest(".strip a");
    if (link) {
      event.preventDefault();
      show(box, link);
    } else if (event.target.closest("a.open")) event.preventDefault();
    else if (tool)
      ({
        in: () => zoom(box, viewOf(box).scale * 1.5),
        out: () => zoom(box, viewOf(box).scale / 1.5),
        fit: () => toggle(box),
        full: () => full(box),
        turn: () => turn(box),
        both: () => both(box),
      })[tool.dataset.zoom]();
  });
  document.addEventListener("dblclick", (event) => {
    const box = boxOf(event);
    if (box && !event.target.closest(".pictools, .strip")) toggle(box, ...middle(box, event));
  });
  document.addEventListener(
    "wheel",
    (event) => {
      const box = boxOf(event);
      if (!box) return;
      const view = viewOf(box);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(box, view.scale * Math.exp(-event.deltaY / 200), ...middle(box, event));
      } else if (view.scale > 1) {
        event.preventDefault();
        view.x -= event.deltaX || (event.shiftKey ? event.deltaY : 0);
        view.y -= event.shiftKey ? 0 : event.deltaY;
        draw(box);
      }
    },
    { passive: false },
  );

  // Drag with one pointer, pinch with two.
  document.addEventListener("pointerdown", (event) => {
    const box = boxOf(event);
    if (!box || event.button || event.target.closest(".pictools, .strip")) return;
    viewOf(box).fingers.set(event.pointerId, event);
  });
  document.addEventListener("pointermove", (event) => {
    const box = boxOf(event);
    if (!box) return;
    const view = viewOf(box),
      before = view.fingers.get(event.pointerId);
    if (!before) return;
    if (view.fingers.size === 2) {
      const other = [...view.fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
      const was = Math.hypot(before.clientX - other.clientX, before.clientY - other.clientY);
      const is = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
      if (was) zoom(box, (view.scale * is) / was, ...middle(box, event));
    } else if (view.scale > 1) {
      if (!box.hasPointerCapture(event.pointerId)) box.setPointerCapture(event.pointerId);
      view.x += event.clientX - before.clientX;
      view.y += event.clientY - before.clientY;
      draw(box);
    }
    view.fingers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, (event) => {
      const box = boxOf(event);
      if (box) viewOf(box).fingers.delete(event.pointerId);
    });
  }

  document.addEventListener("keydown", (event) => {
    const box = boxOf(event);
    if (!box || event.target !== box || event.altKey || event.ctrlKey || event.metaKey) return;
    const view = viewOf(box),
      move = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (!move || view.scale === 1) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    view.x += move[0];
    view.y += move[1];
    draw(box);
  });
  addEventListener("resize", () => {
    for (const box of document.querySelectorAll("[data-viewer]")) draw(box);
  });
})();
