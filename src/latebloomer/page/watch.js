// Keeps an open page up to date: it asks for changes and puts them in their places. All HTML and SVG
// is written by the server, by the same code as a report; names of learners come escaped.
"use strict";
(() => {
  const page = document.getElementById("page");
  const status = document.getElementById("status");
  const at = (id) => document.getElementById(id);
  let seen = page.dataset.seen;
  let source = null;

  // What a reader has opened stays open.
  function put(place, html) {
    const keys = (state) =>
      new Set([...place.querySelectorAll(`details${state}`)].map((one) => one.dataset.key));
    const opened = keys("[open]"), closed = keys(":not([open])");
    const checked = new Set([...place.querySelectorAll("input:checked")].map((one) => one.value));
    const scrolled = place.querySelector(".feed")?.scrollTop;
    const focus = place.contains(document.activeElement) &&
      document.activeElement.closest("details")?.dataset.key;
    place.innerHTML = html;
    for (const one of place.querySelectorAll("details")) {
      if (opened.has(one.dataset.key)) one.open = true;
      else if (closed.has(one.dataset.key)) one.open = false;
      if (focus && one.dataset.key === focus) one.querySelector("summary").focus();
    }
    for (const one of place.querySelectorAll("input[name]")) one.checked = checked.has(one.value);
    if (scrolled) place.querySelector(".feed")?.scrollTo(0, scrolled);
  }

  function whole(html) {
    const raw = at("raw")?.checked;
    put(page, html);
    if (raw !== undefined && at("raw")) at("raw").checked = raw;
  }

  function row(arm, cells) {
    const line = at(`r${arm}`);
    if (line) {
      for (const [k, html] of Object.entries(cells)) {
        const cell = document.createElement("tr");
        cell.innerHTML = html;
        const made = cell.firstChild, old = line.children[k];
        old.className = made.className;
        put(old, made.innerHTML);
      }
    } else {
      const made = Object.assign(document.createElement("tr"), { id: `r${arm}` });
      made.innerHTML = Object.values(cells).join("");
      at("rows").append(made);
    }
  }

  function order(arms) {
    if (at("rows").closest("table").dataset.sorted) return; // the reader's own order
    const rows = at("rows"), wanted = arms.map((arm) => at(`r${arm}`)).filter(Boolean);
    const focus = document.activeElement;
    for (const line of [...rows.children]) if (!wanted.includes(line)) line.remove();
    wanted.forEach((line, k) => {
      if (rows.children[k] !== line) rows.insertBefore(line, rows.children[k] || null);
    });
    if (focus && rows.contains(focus)) focus.focus({ preventScroll: true });
  }

  function draw(arm, html) {
    const old = at(`c${arm}`);
    if (old) old.outerHTML = html;
    else at("curves").insertAdjacentHTML("beforeend", html);
  }

  function grow(arm, [strong, faint]) {
    const curve = at(`c${arm}`);
    if (!curve) return;
    for (const path of curve.querySelectorAll("path")) {
      const more = path.classList.contains("raw") ? faint : strong;
      if (!more) continue;
      if (path.dataset.d) path.dataset.d += more; // `page.js` draws it on another axis
      else path.setAttribute("d", path.getAttribute("d") + more);
    }
  }

  function change(message) {
    if (message.whole !== undefined) { whole(message.whole); return window.latebloomer.redrawn(); }
    const each = (values, f) => Object.entries(values || {}).forEach(([key, value]) => f(key, value));
    each(message.draw, draw);
    each(message.grow, grow);
    each(message.look, (arm, look) => at(`c${arm}`)?.setAttribute("class", `curve ${look}`));
    each(message.rows, row);
    if (message.order) order(message.order);
    each(message.html, (id, html) => at(id) && put(at(id), html));
    if (message.label) document.querySelector(".frame")?.setAttribute("aria-label", message.label);
    window.latebloomer.redrawn(message.box);
  }

  function connect() {
    if (source || document.hidden || !page.dataset.events) return;
    source = new EventSource(`${page.dataset.events}?seen=${encodeURIComponent(seen)}`);
    source.onopen = () => { status.textContent = ""; page.dataset.connected = "yes"; };
    source.onerror = () => {
      page.dataset.connected = "no";
      status.textContent = "Disconnected: this is the last known state. The page reconnects when latebloomer watch runs again.";
      if (source.readyState === EventSource.CLOSED) { disconnect(); setTimeout(connect, 2000); }
    };
    source.onmessage = (event) => { seen = event.lastEventId; change(JSON.parse(event.data)); };
  }

  function disconnect() {
    source?.close();
    source = null;
  }

  // A browser opens six connections to one server: a tab that nobody looks at gives its own back.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  setInterval(() => document.hidden && fetch(page.dataset.alive).catch(() => {}), 60000);
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
})();
