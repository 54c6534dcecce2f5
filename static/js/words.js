"use strict";
// The scripts' texts in the language of the page, which brings them as JSON; English needs none.
(() => {
  let known = {};
  try {
    known = JSON.parse(document.getElementById("script-words")?.textContent || "{}");
  } catch {
    /* English, then */
  }
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
  window.words = (text, values = {}) => filled(known[text] || text, values);
})();
