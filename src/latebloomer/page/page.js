// What a reader can do with a page: point at a curve, zoom, change the axis, highlight a learner
// everywhere, sort tables; by mouse or by keys.
// The page is complete without it. The live page calls `redrawn` when the server has changed something.
"use strict";
(() => {
  const GAP = 15; // pixels between two names
  const at = (id) => document.getElementById(id);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const lit = new Set(); // learners that were clicked
  let zoom = null; // part of the plane in the coordinates of paths; null: all of it
  let box = null; // all of it
  let cursor = null; // { arm, k }: the point that the reader looks at

  // --- the plane ---

  function readBox() {
    const curves = at("curves");
    if (!curves) return;
    const text = curves.dataset.box || curves.getAttribute("viewBox");
    const [x, y, w, h] = text.split(" ").map(Number);
    curves.dataset.box = text;
    box = { x, y, w, h };
    if (plain()) return;
    const places = all("#curves path").flatMap((path) =>
      points(path).map(([pull]) => (seconds ? pull * paceOf(armOf(path)) : pull)));
    const ends = seconds ? places : [1, w];
    const high = Math.max(...ends), low = Math.min(...ends.filter((place) => place > 0), high);
    box.x = log ? Math.log10(low) : 0;
    box.w = (log ? Math.log10(high) : high) - box.x || 1;
  }

  // --- the horizontal axis: pulls or seconds, linear or logarithmic ---

  let seconds = false, log = false;
  let paces = new Map(); // seconds of a mean pull, by learner
  const plain = () => !seconds && !log;
  const paceOf = (arm) => paces.get(arm) ?? 0;
  const armOf = (path) => path.parentNode.id.slice(1);
  const source = (path) => path.dataset.d ?? path.getAttribute("d"); // in pulls, as it was sent
  function across(arm, pull) {
    const place = seconds ? pull * paceOf(arm) : pull;
    return log ? Math.max(box.x, Math.log10(place)) : place; // the logarithm of 0 is at the left
  }
  function readScale() {
    seconds = document.querySelector("[name=unit][value=seconds]")?.checked ?? false;
    log = document.querySelector("[name=log]")?.checked ?? false;
    const told = (at("paces")?.dataset.paces ?? "").split(" ").map((one) => one.split(":"));
    paces = new Map(told.map(([arm, pace]) => [arm, Number(pace)]));
    readBox();
    if (!at("across")) return;
    const unit = seconds ? "seconds of training of each learner, by its mean pull" : "pulls of each learner";
    at("across").textContent = log ? `${unit}, logarithmic` : unit;
  }
  function drawPaths() {
    for (const path of all("#curves path")) {
      const text = source(path);
      if (plain()) {
        if (path.dataset.d) path.setAttribute("d", text);
        delete path.dataset.d;
        continue;
      }
      path.dataset.d = text;
      const moved = (_, command, pull) => `${command}${number(across(armOf(path), Number(pull)), 7)} `;
      path.setAttribute("d", text.replace(/([ML])([\d.e+-]+) /g, moved));
    }
  }
  document.addEventListener("change", (event) => {
    if (!event.target.closest?.(".scales")) return;
    readScale();
    drawPaths();
    reset();
  });

  const shown = () => zoom || box;
  const scoreOf = (y) => at("curves").dataset.origin - y * at("curves").dataset.unit;
  const depthOf = (score) => (at("curves").dataset.origin - score) / at("curves").dataset.unit;
  const percent = (share) => `${(100 * share).toPrecision(4)}%`;
  const number = (value, digits = Math.abs(value) < 9999 ? 4 : 6) => String(Number(value.toPrecision(digits)));
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  function ticks(low, high, about) {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k += 1)
      found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  // 1, 2 and 5 times powers of ten; only the powers if there are many, and more numbers if there are few.
  function logTicks(low, high) {
    const found = [];
    for (let power = Math.floor(low); power <= high; power += 1)
      for (const m of high - low > 2.5 ? [1] : [1, 2, 5]) found.push(Number((m * 10 ** power).toPrecision(12)));
    const inside = found.filter((value) => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
    return inside.length > 1 ? inside : ticks(10 ** low, 10 ** high, 4);
  }

  function drawAxes(view) {
    const low = scoreOf(view.y + view.h), high = scoreOf(view.y), shapes = [];
    for (const value of ticks(low, high, 6)) {
      const y = percent((depthOf(value) - view.y) / view.h);
      shapes.push(`<line class="grid" x2="100%" y1="${y}" y2="${y}"/>`,
        `<text x="0" y="${y}" class="tick end" dx="-8" dy="4">${number(value, 6)}</text>`);
    }
    for (const value of log ? logTicks(view.x, view.x + view.w) : ticks(view.x, view.x + view.w, 5))
      if (seconds || Number.isInteger(value))
        shapes.push(`<text x="${percent(((log ? Math.log10(value) : value) - view.x) / view.w)}" y="100%" ` +
          `class="tick middle" dy="18">${seconds ? number(value) : value.toLocaleString("en-US")}</text>`);
    shapes.push('<line class="axis" x2="100%" y1="100%" y2="100%"/>');
    at("axes").innerHTML = shapes.join("");
  }

  // Puts everything with a `data-at` where the shown part of the plane has it.
  function layout() {
    const view = shown(), frame = document.querySelector(".frame");
    if (!view || !frame) return;
    at("curves").setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((v) => number(v, 9)).join(" "));
    const own = zoom || !plain(); // else the axes are as they were sent
    if (own || at("axes").dataset.own) drawAxes(view);
    at("axes").dataset.own = own ? "yes" : "";
    addNames();
    for (const one of all("#marks [data-at]:not(.leader)")) {
      const [x, y] = placeOf(one), upright = y === undefined;
      const outside = x < -0.001 || x > 1.001 || (zoom && (y < -0.001 || y > 1.001));
      one.classList.toggle("off", outside || (upright && seconds)); // pulls of all learners alike
      const put = { circle: ["cx", "cy"], line: ["x1", "y1"] }[one.tagName] || ["x", "y"];
      one.setAttribute(put[0], percent(x));
      if (one.tagName === "line") one.setAttribute("x2", percent(x));
      if (!upright) one.setAttribute(put[1], percent(clamp(y, 0, 1)));
    }
    const size = frame.getBoundingClientRect();
    spread(size.height);
    spreadTexts(size.width);
  }
  function placeOf(mark) {
    const view = shown(), [pull, score] = mark.dataset.at.split(" ").map(Number);
    const y = score === undefined ? undefined : (depthOf(score) - view.y) / view.h;
    return [(across(mark.dataset.arm, pull) - view.x) / view.w, y];
  }

  // Names at the heights of the ends of curves, at least a line apart; none for a curve out of sight.
  function spread(height) {
    const ends = all("#names text.name").map((name) => {
      const leader = document.querySelector(`#names .leader[data-arm="${name.dataset.arm}"]`);
      const y = heightOf(leader);
      for (const one of [name, leader]) one.classList.toggle("off", y === null);
      if (y !== null) leader.setAttribute("y1", percent(y));
      return { name, leader, y: y === null ? null : y * height };
    }).filter((end) => end.y !== null);
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((one, k) => { if (k) one.y = Math.max(one.y, ends[k - 1].y + GAP); });
    let room = height;
    for (const one of ends.reverse()) {
      one.y = Math.min(one.y, room);
      room = one.y - GAP;
    }
    for (const { name, leader, y } of ends) {
      name.setAttribute("y", percent(y / height));
      leader.setAttribute("y2", percent(y / height));
      for (const one of [name, leader]) one.classList.toggle("off", y < 0);
    }
  }

  // Where a curve or its forecast ends in the shown part of the plane, from 0 to 1; null: it is not seen.
  function heightOf(leader) {
    const inside = ([x, y]) => x >= -0.001 && x <= 1.001 && y >= -0.001 && y <= 1.001;
    const end = placeOf(leader), view = shown(), arm = leader.dataset.arm;
    if (!zoom || inside(end)) return clamp(end[1], 0, 1);
    const path = at(`c${arm}`)?.querySelector("path:not(.raw)");
    const seen = (path ? points(path) : [])
      .map(([pull, depth]) => [(across(arm, pull) - view.x) / view.w, (depth - view.y) / view.h])
      .filter(inside);
    return seen.length ? clamp(seen.at(-1)[1], 0, 1) : null;
  }

  // The texts above the plot, from the right: those that there is room for.
  function spreadTexts(width) {
    let free = Infinity;
    const texts = all("#marks text.horizon, #marks text.level");
    const right = (one) => (parseFloat(one.getAttribute("x")) / 100) * width;
    texts.sort((a, b) => right(b) - right(a));
    for (const one of texts) {
      const line = one.dataset.at && one.previousElementSibling; // drawn before its text
      if ((line && line.classList.contains("off")) || (one.dataset.at && seconds)) {
        one.classList.add("off");
        continue;
      }
      one.classList.remove("off");
      const wide = one.getComputedTextLength(), end = right(one), starts = end < wide;
      one.classList.toggle("end", !starts);
      const hidden = (starts ? end + wide : end) > free - 8;
      one.classList.toggle("off", hidden);
      if (!hidden) free = starts ? end : end - wide;
    }
  }

  // A highlighted learner has a name, also if it is gray.
  function addNames() {
    all("#names .added").forEach((one) => one.remove());
    for (const arm of lit) {
      const mark = document.querySelector(`#marks .mark[data-arm="${arm}"]`);
      if (!mark || document.querySelector(`#names text.name[data-arm="${arm}"]`)) continue;
      const make = (tag, values) => {
        const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
        Object.entries(values).forEach(([key, value]) => one.setAttribute(key, value));
        at("names").append(one);
        return one;
      };
      const own = { "data-arm": arm, class: "added lit" };
      make("line", { ...own, class: "leader added lit", x1: 4, x2: 18, "data-at": mark.dataset.at });
      const name = nameOf(arm), text = make("text", { ...own, class: "name added lit", x: 22, dy: 4 });
      text.textContent = name.length > 20 ? `${name.slice(0, 9)}…${name.slice(-10)}` : name;
    }
  }
  const nameOf = (arm) => at(`r${arm}`)?.querySelector(".who").textContent ?? `learner ${arm}`;

  // --- pointing ---

  const known = new WeakMap(); // the points of a path, as long as the path is the same
  function points(path) {
    const text = source(path);
    if (known.get(path)?.text !== text) {
      const found = text.slice(1).replace(/h0|Z/, "").split("L").map((one) => one.split(" ").map(Number));
      known.set(path, { text, found });
    }
    return known.get(path).found;
  }
  const curves = () => all("#curves .curve").map((one) => ({
    arm: one.id.slice(1), points: points(one.querySelector("path:not(.raw)")),
  }));

  function nearest(x, y, width, height) {
    const view = shown();
    let best = null;
    for (const one of curves()) {
      const wanted = view.x + x * view.w;
      let low = 0, high = one.points.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (across(one.arm, one.points[middle][0]) < wanted) low = middle; else high = middle;
      }
      for (const k of [low, high]) {
        const [pull, depth] = one.points[k];
        const far = Math.hypot(((across(one.arm, pull) - view.x) / view.w - x) * width, ((depth - view.y) / view.h - y) * height);
        if (!best || far < best.far) best = { arm: one.arm, k, far };
      }
    }
    return best;
  }

  function tell() {
    const plot = document.querySelector(".plot"), view = shown();
    let tip = plot.querySelector(".tooltip");
    if (!tip) {
      tip = Object.assign(document.createElement("div"), { className: "tooltip" });
      tip.setAttribute("role", "status");
      plot.append(tip);
    }
    const one = cursor && curves().find((curve) => curve.arm === cursor.arm);
    hot(one ? one.arm : null);
    tip.hidden = !one;
    if (!one) return;
    cursor.k = clamp(cursor.k, 0, one.points.length - 1);
    const [pull, depth] = one.points[cursor.k];
    const [left, top] = [(across(one.arm, pull) - view.x) / view.w, (depth - view.y) / view.h];
    if (zoom && (left < 0 || left > 1 || top < 0 || top > 1)) { tip.hidden = true; return; }
    const forecast = at(`r${one.arm}`)?.querySelector("[data-forecast]")?.textContent;
    const time = seconds ? `, ${number(pull * paceOf(one.arm), 3)} s` : "";
    const lines = [nameOf(one.arm), `pull ${Math.round(pull).toLocaleString("en-US")}${time}: score ${number(scoreOf(depth))}`,
      ...(forecast ? [`forecast ${forecast}`] : [])];
    tip.replaceChildren(...lines.map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    const frame = document.querySelector(".frame").getBoundingClientRect(), outer = plot.getBoundingClientRect();
    const x = frame.left - outer.left + clamp(left, 0, 1) * frame.width;
    const y = frame.top - outer.top + clamp(top, 0, 1) * frame.height;
    tip.style.left = `${clamp(x + 12, 0, outer.width - tip.offsetWidth)}px`;
    tip.style.top = `${Math.max(0, y - tip.offsetHeight - 10)}px`;
  }

  // --- highlights ---

  function mark(arm, css, on) {
    for (const one of [at(`c${arm}`), at(`f${arm}`), at(`r${arm}`),
      ...all(`[data-arm="${arm}"], [data-row="${arm}"]`)]) one?.classList.toggle(css, on);
  }
  function hot(arm) {
    all(".hot").forEach((one) => one.classList.remove("hot"));
    if (arm !== null) mark(arm, "hot", true);
  }
  function toggle(arm) {
    if (lit.has(arm)) lit.delete(arm); else lit.add(arm);
    mark(arm, "lit", lit.has(arm));
    for (const row of all(`#r${arm}, [data-row="${arm}"]`)) row.setAttribute("aria-selected", lit.has(arm));
    document.body.classList.toggle("some-lit", lit.size > 0);
    layout();
    mark(arm, "lit", lit.has(arm));
  }
  function armAt(target) {
    const one = target.closest?.("[data-arm], [data-row], #rows > tr, #curves .curve");
    return one ? one.dataset.arm ?? one.dataset.row ?? one.id.slice(1) : null;
  }

  document.addEventListener("pointerover", (event) => {
    if (!event.target.closest?.(".plot")) hot(armAt(event.target));
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest?.(".plot")) hot(armAt(event.target));
  });
  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.closest?.("th[aria-sort]")) return sort(target.closest("th"));
    if (target.closest?.("a, button, input, label, summary, .plot")) return;
    const arm = armAt(target);
    if (arm !== null) toggle(arm);
  });

  // --- zoom: drag, double-click, keys ---

  let drag = null;
  const place = (event) => {
    const frame = document.querySelector(".frame").getBoundingClientRect();
    return { x: (event.clientX - frame.left) / frame.width, y: (event.clientY - frame.top) / frame.height, frame };
  };
  function zoomTo(x0, x1, y0, y1) {
    const view = shown();
    zoom = { x: view.x + x0 * view.w, y: view.y + y0 * view.h, w: (x1 - x0) * view.w, h: (y1 - y0) * view.h };
    layout();
    tell(); // or what it says would stay where the point was
  }
  function reset() { zoom = null; layout(); tell(); }

  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest?.(".frame") || event.pointerType !== "mouse" || event.button) return;
    drag = { ...place(event), moved: false };
    event.preventDefault(); // no selection of text
    event.target.closest(".plot").focus({ preventScroll: true });
  });
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".plot");
    if (!drag && !plot) { if (cursor && !document.activeElement.closest?.(".plot")) { cursor = null; tell(); } return; }
    if (!document.querySelector(".frame") || !box) return;
    const spot = place(event);
    if (drag && Math.abs(spot.x - drag.x) * spot.frame.width > 6) { drag.moved = true; band(drag, spot); }
    if (drag?.moved) return;
    const found = nearest(spot.x, spot.y, spot.frame.width, spot.frame.height);
    cursor = found && found.far < 60 ? found : null;
    tell();
  });
  document.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const from = drag, to = place(event);
    drag = null;
    band(null);
    if (!from.moved) { if (cursor) toggle(cursor.arm); return; }
    cursor = null;
    const [x0, x1] = [from.x, to.x].map((v) => clamp(v, 0, 1)).sort((a, b) => a - b);
    const [y0, y1] = [from.y, to.y].map((v) => clamp(v, 0, 1)).sort((a, b) => a - b);
    const tall = (y1 - y0) * from.frame.height > 12; // a drag along the axis keeps all scores
    if (x1 > x0) zoomTo(x0, x1, tall ? y0 : 0, tall ? y1 : 1);
  });
  document.addEventListener("dblclick", (event) => { if (event.target.closest?.(".frame")) reset(); });

  function band(from, to) {
    const frame = document.querySelector(".frame");
    let one = frame?.querySelector(".band");
    if (!from) return one?.remove();
    if (!one) {
      one = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      one.setAttribute("class", "band");
      frame.append(one);
    }
    one.setAttribute("x", percent(Math.min(from.x, to.x)));
    one.setAttribute("width", percent(Math.abs(to.x - from.x)));
    const tall = Math.abs(to.y - from.y) * from.frame.height > 12;
    one.setAttribute("y", tall ? percent(Math.min(from.y, to.y)) : "0");
    one.setAttribute("height", tall ? percent(Math.abs(to.y - from.y)) : "100%");
  }

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (target.matches?.("table.sortable :is(th, tr)[tabindex]")) return keyInTable(event, target);
    if (!target.matches?.(".plot") || !box || event.ctrlKey || event.metaKey) return;
    const order = all("#curves .curve").map((one) => one.id.slice(1)).reverse();
    if (!order.length) return;
    cursor ??= { arm: order[0], k: Infinity };
    const next = (step) => order[clamp(order.indexOf(cursor.arm) + step, 0, order.length - 1)];
    const actions = {
      ArrowLeft: () => { cursor.k -= 1; }, ArrowRight: () => { cursor.k += 1; },
      ArrowUp: () => { cursor.arm = next(-1); }, ArrowDown: () => { cursor.arm = next(1); },
      Enter: () => toggle(cursor.arm), "+": () => zoomTo(0.25, 0.75, 0.25, 0.75),
      "-": reset, 0: reset, Escape: () => { reset(); cursor = null; },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
    tell();
  });

  // --- tables ---

  let sorted = null; // column and direction of the list of races, which is drawn again and again
  function sort(head, down = head.getAttribute("aria-sort") !== "descending") {
    const table = head.closest("table"), column = [...head.parentElement.children].indexOf(head);
    sorted = [column, down];
    all("th[aria-sort]", table).forEach((one) => one.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.dataset.sorted = "yes";
    const value = (row) => {
      const cell = row.children[column], text = cell.dataset.sort || cell.textContent.trim();
      const first = parseFloat(text.replaceAll(",", ""));
      return Number.isNaN(first) ? text : first;
    };
    const rows = [...table.tBodies[0].rows], values = new Map(rows.map((row) => [row, value(row)]));
    rows.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      const numbers = typeof x === "number" && typeof y === "number";
      if (!numbers && typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // unknown last
      const order = numbers ? x - y : String(x).localeCompare(String(y));
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }
  // A table is one stop of the Tab key; arrow keys move among its heads and rows.
  const ROWS = "#rows > tr, tr[data-row]"; // rows that are learners
  const stops = (table) => [...all("th[aria-sort]", table), ...all(ROWS, table)];
  function prepareTables() {
    for (const table of all("table.sortable")) {
      for (const head of all("thead th:not([aria-sort])", table)) head.setAttribute("aria-sort", "none");
      const own = stops(table), current = own.find((one) => one.tabIndex === 0) ?? own[0];
      for (const one of [...own, ...all("tbody summary", table)]) one.tabIndex = one === current ? 0 : -1;
      const rows = all(ROWS, table);
      for (const row of rows) row.setAttribute("aria-selected", lit.has(armAt(row)));
      if (rows.length) table.setAttribute("aria-multiselectable", "true");
      table.setAttribute("role", "grid");
      table.setAttribute("aria-label", table.closest("section")?.querySelector("h2")?.textContent ?? "races");
    }
    const races = document.querySelector("table.races:not([data-sorted])");
    if (races && sorted) sort(races.tHead.rows[0].children[sorted[0]], sorted[1]);
    filter();
  }
  function keyInTable(event, target) {
    const table = target.closest("table"), isHead = target.tagName === "TH";
    const [heads, rows] = [all("th[aria-sort]", table), all(ROWS, table)];
    const among = isHead ? heads : rows, k = among.indexOf(target), reason = target.querySelector("details");
    const open = (is) => () => { if (reason) reason.open = is; };
    const act = () => (isHead ? sort(target) : toggle(armAt(target)));
    const actions = {
      ArrowDown: () => focusOn(table, isHead ? rows[0] : rows[k + 1]),
      ArrowUp: () => focusOn(table, isHead ? null : rows[k - 1] ?? heads[0]),
      ArrowRight: isHead ? () => focusOn(table, heads[k + 1]) : open(true),
      ArrowLeft: isHead ? () => focusOn(table, heads[k - 1]) : open(false),
      Home: () => focusOn(table, among[0]), End: () => focusOn(table, among.at(-1)),
      Enter: act, " ": act,
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }
  function focusOn(table, stop) {
    if (!stop) return;
    for (const one of stops(table)) one.tabIndex = one === stop ? 0 : -1;
    stop.focus();
  }
  function preparePlots() {
    for (const plot of all(".plot")) {
      plot.tabIndex = 0;
      plot.setAttribute("role", "application");
      plot.setAttribute("aria-label", "Learning curves. Left and right move along a curve, up and down " +
        "to the next curve; Enter highlights it, plus zooms in, 0 shows all.");
    }
    for (const one of all("[data-scripted]")) one.hidden = false;
  }
  function filter() {
    const text = at("filter")?.value.toLowerCase() ?? "";
    for (const row of all(".races tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(text);
  }
  document.addEventListener("input", (event) => { if (event.target.id === "filter") filter(); });

  // --- what the server changed ---

  function redrawn(newBox) {
    if (newBox && at("curves")) at("curves").dataset.box = newBox;
    readScale();
    drawPaths();
    preparePlots();
    prepareTables();
    for (const arm of lit) mark(arm, "lit", true);
    layout();
    if (cursor) tell();
  }
  window.latebloomer = { redrawn };
  window.addEventListener("resize", layout);
  redrawn();
})();
