// Enhancements for pages that also work without JavaScript: crosshair, drawer, live reload and keyboard shortcuts.
// No text is inserted as HTML: parts of a page are replaced with parts of parsed, server-rendered pages.
"use strict";

const page = document.documentElement;
const root = page.dataset.root || "";
const SVG = "http://www.w3.org/2000/svg";
const REFRESH_INTERVAL = 1000 * page.dataset.refresh;

function make(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function makeShape(name, attributes) {
  const shape = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  return shape;
}

// --- cookies: time zone and theme ---

function cookie(name) {
  const entry = document.cookie.split("; ").find((text) => text.startsWith(`${name}=`));
  return entry === undefined ? null : entry.slice(name.length + 1);
}

function storeCookie(name, value) {
  document.cookie = `${name}=${value}; path=${root || "/"}; max-age=31536000; samesite=lax`;
  return cookie(name) === value; // false if cookies are disabled
}

// The server formats times in the time zone stored in a cookie. The first visit sets the cookie and reloads the page,
// at most once per session: otherwise, a server that does not know the time zone would cause endless reloads.
function storeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  if (!/^[A-Za-z0-9_+/-]+$/.test(zone) || page.dataset.zone === undefined || page.dataset.zone === zone) return;
  if (!storeCookie("germane_zone", zone)) return;
  try {
    if (sessionStorage.getItem("germane_zone") === zone) return;
    sessionStorage.setItem("germane_zone", zone);
  } catch {
    return; // without session storage, repeated reloads cannot be prevented
  }
  location.reload();
}

const THEMES = { auto: "light", light: "dark", dark: "auto" };

function switchTheme(event) {
  const form = event.target.closest("form[data-theme-switch]");
  if (!form) return;
  const button = form.querySelector("button");
  const chosen = button.value;
  if (!(chosen in THEMES) || !storeCookie("germane_theme", chosen)) return; // the form submits it to the server instead
  event.preventDefault();
  if (chosen === "auto") delete page.dataset.theme;
  else page.dataset.theme = chosen;
  const text = `Theme: ${chosen}. Change to ${THEMES[chosen]}`;
  button.value = THEMES[chosen];
  button.title = text;
  button.querySelector(".hidden").textContent = text;
}

// --- charts: a crosshair with values, by pointer and arrow keys ---

const announcement = make("p", { className: "hidden" }); // announced by screen readers
announcement.setAttribute("role", "status");

function points(svg) {
  // from, to, x, y, mean, low, high, n, and mean and n of the failing route; all pictures of a chart have the same
  if (svg.points) return svg.points;
  const { since, x, y } = plotOf(svg);
  const rows = JSON.parse(svg.closest(".chart").querySelector("[data-points]").dataset.points);
  svg.points = rows.map(([offset, length, mean, ...more]) => {
    const [from, to] = [since + offset, since + offset + length];
    return [from, to, (x(from) + x(to)) / 2, y(mean), mean, ...more];
  });
  return svg.points;
}

function prepareCharts(within) {
  for (const svg of within.querySelectorAll("svg[data-plot]")) {
    if (!points(svg).length) continue;
    svg.setAttribute("tabindex", "0");
    const title = svg.querySelector("title");
    if (!title) continue;
    // A title element would pop up over the crosshair. Screen readers announce the label instead.
    svg.setAttribute("aria-label", `${title.textContent}. Use arrow keys to read the values.`);
    svg.setAttribute("aria-describedby", svg.querySelector("desc").id);
    svg.removeAttribute("aria-labelledby");
    title.remove();
  }
}

function formatter(options) {
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: page.dataset.zone || undefined });
  } catch {
    return new Intl.DateTimeFormat("en-GB", options);
  }
}

const dayAndTime = formatter({ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const timeAlone = formatter({ hour: "2-digit", minute: "2-digit" });

function when(from, to) {
  const [first, last] = [new Date(from * 1000), new Date(to * 1000)];
  return `${dayAndTime.format(first)} – ${(to - from < 86400 ? timeAlone : dayAndTime).format(last)}`;
}

function number(value) {
  return (Number(value.toFixed(2)) + 0).toFixed(2).replace("-", "−"); // never "−0.00"
}

function describePoint([from, to, , , mean, low, high, n, failing, m], name) {
  const interval = low === null ? "interval unknown" : `95% interval ${number(low)} to ${number(high)}`;
  const few = (count) => (count < 20 ? ": not enough data (need 20)" : "");
  const route = failing === undefined ? "" : `\n${name}: ${number(failing)}, n=${m}${few(m)}`;
  return `${when(from, to)}\nmean ${number(mean)}, ${interval}\nn=${n}${few(n)}${route}`;
}

function show(svg, index) {
  const point = points(svg)[index];
  if (!point) return "";
  const box = svg.viewBox.baseVal;
  hideCross(svg);
  svg.chosen = index;
  svg.append(
    makeShape("line", { class: "cross x", x1: point[2], x2: point[2], y1: 0, y2: box.height }),
    makeShape("line", { class: "cross y", x1: 0, x2: box.width, y1: point[3], y2: point[3] }),
  );
  const figure = svg.closest(".chart");
  const readout = make("div", { className: "readout", textContent: describePoint(point, svg.dataset.failing) });
  figure.append(readout);
  placeReadout(readout, svg, figure, point);
  return readout.textContent;
}

function placeReadout(readout, svg, figure, point) {
  const [inside, around] = [svg.getBoundingClientRect(), figure.getBoundingClientRect()];
  const scale = inside.width / svg.viewBox.baseVal.width;
  const x = inside.left - around.left + point[2] * scale;
  const left = x + 12 + readout.offsetWidth > around.width ? x - 12 - readout.offsetWidth : x + 12;
  const y = inside.top - around.top + point[3] * scale + 14; // below the point, where score charts are usually empty
  readout.style.left = `${Math.max(0, left)}px`;
  readout.style.top = `${Math.min(y, around.height - readout.offsetHeight)}px`;
}

function hideCross(svg) {
  svg.querySelectorAll(".cross").forEach((line) => line.remove());
  svg.closest(".chart")?.querySelectorAll(".readout").forEach((readout) => readout.remove());
  delete svg.chosen;
}

function nearest(svg, event) {
  const inside = svg.getBoundingClientRect();
  const scale = svg.viewBox.baseVal.width / inside.width;
  const [x, y] = [(event.clientX - inside.left) * scale, (event.clientY - inside.top) * scale];
  const distance = (point) => Math.abs(point[2] - x) * 1000 + Math.abs(point[3] - y); // two fingerprints may share a bucket
  return points(svg).reduce((best, point, index, all) => (distance(point) < distance(all[best]) ? index : best), 0);
}

let pointed = null;

function followPointer(event) {
  const svg = event.target.closest?.("svg[data-plot]");
  if (pointed && pointed !== svg) hideCross(pointed);
  pointed = svg && points(svg).length ? svg : null;
  if (!pointed) return;
  const index = nearest(svg, event);
  if (svg.chosen !== index) show(svg, index);
}

// --- charts: drag over a range to zoom, click a point to see its answers ---

let dragged = null; // { svg, from, to } in units of the view box

function plotOf(svg) {
  const [left, right, since, until, top, bottom, floor] = svg.dataset.plot.split(",").map(Number);
  return {
    left,
    right,
    since,
    at: (x) => since + ((x - left) / (right - left)) * (until - since),
    x: (at) => left + ((Math.min(until, Math.max(since, at)) - since) / (until - since)) * (right - left),
    y: (mean) => bottom - ((mean - floor) / (1 - floor)) * (bottom - top),
  };
}

function plotX(svg, event) {
  const inside = svg.getBoundingClientRect();
  const { left, right } = plotOf(svg);
  const x = (event.clientX - inside.left) * (svg.viewBox.baseVal.width / inside.width);
  return Math.min(right, Math.max(left, x));
}

function beginDrag(event) {
  const svg = event.button === 0 && event.target.closest?.("svg[data-plot]");
  if (!svg || event.target.closest("a")) return; // a marker's label is a link
  const x = plotX(svg, event);
  dragged = { svg, from: x, to: x };
  event.preventDefault();
}

function drag(event) {
  if (!dragged) return;
  const { svg, from } = dragged;
  dragged.to = plotX(svg, event);
  const [x, width] = [Math.min(from, dragged.to), Math.abs(dragged.to - from)];
  svg.querySelector(".selection")?.remove();
  svg.append(makeShape("rect", { class: "selection", x, width, y: 0, height: svg.viewBox.baseVal.height }));
}

function cancelDrag() {
  dragged?.svg.querySelector(".selection")?.remove();
  dragged = null;
}

const DRAG_LENGTH = 12; // shorter movements are clicks

function endDrag(event) {
  if (!dragged) return;
  const { svg, from, to } = dragged;
  cancelDrag();
  if (Math.abs(to - from) >= DRAG_LENGTH) {
    const [first, last] = [Math.min(from, to), Math.max(from, to)].map(plotOf(svg).at);
    location.assign(withRange(location.href, first, last));
  } else if (svg.contains(event.target)) {
    openPoint(svg, points(svg)[nearest(svg, event)]);
  }
}

function openPoint(svg, point) {
  if (point && svg.dataset.answers) location.assign(withRange(svg.dataset.answers, point[0], point[1]));
  return Boolean(point && svg.dataset.answers);
}

function withRange(address, since, until) {
  const url = new URL(address, location.href);
  for (const name of ["window", "after", "bucket"]) url.searchParams.delete(name);
  for (const [name, seconds] of [["since", since], ["until", until]]) {
    url.searchParams.set(name, new Date(Math.round(seconds / 60) * 60000).toISOString().replace(".000Z", "Z"));
  }
  return url;
}

function stepChart(svg, key) {
  if (key === "Enter") return openPoint(svg, points(svg)[svg.chosen]);
  const last = points(svg).length - 1;
  const at = svg.chosen ?? (key === "ArrowLeft" ? last + 1 : -1);
  const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[key];
  if (next === undefined) return false;
  announcement.textContent = show(svg, Math.min(last, Math.max(0, next)));
  return true;
}

// --- the drawer: an answer next to its list ---

let drawer = null;
let opener = null;
let trail = []; // the URLs in the list from which the drawer was opened; "next" and "previous" move through them
let hasNewLabel = false;
const home = location.pathname + location.search;
const wasDrawer = Boolean(history.state?.depth); // reloaded while the drawer was open, so the answer is now a full page

async function fetchPage(address) {
  const response = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" } });
  if (!response.ok) throw new Error(String(response.status));
  return { response, document: new DOMParser().parseFromString(await response.text(), "text/html") };
}

function drawerUrl(address) {
  const url = new URL(address, location.href);
  url.searchParams.set("part", "drawer");
  return url;
}

let fills = 0;

// Returns false if another answer was requested, or the drawer closed, in the meantime.
async function fillDrawer(address) {
  const fill = (fills += 1);
  const fetched = (await fetchPage(drawerUrl(address))).document;
  if (fill !== fills) return false;
  drawer ??= makeDrawer();
  const content = fetched.querySelector("main") ?? fetched.body;
  drawer.replaceChildren(closeButton(leaveDrawer), ...Array.from(content.childNodes, (node) => document.adoptNode(node)));
  followTrail(address);
  prepareCharts(drawer);
  if (!drawer.open) drawer.showModal();
  drawer.querySelector(".close").focus({ preventScroll: true });
  drawer.scrollTop = 0; // only works in an open dialog
  return true;
}

function pathOf(address) {
  return new URL(address, location.href).pathname;
}

function linkTo(address) {
  const links = [...document.querySelectorAll("main a[data-drawer]")];
  return links.find((link) => link.pathname === pathOf(address));
}

// The server's links step through all answers that match a filter. The list on a page may differ, because it merges
// repetitions and limits refusals. Beyond the ends of the list, the server's links apply.
function followTrail(address) {
  const at = trail.findIndex((other) => pathOf(other) === pathOf(address));
  const steps = drawer.querySelector(".steps");
  if (at < 0 || !steps) return;
  opener = linkTo(address) ?? opener;
  const following = drawer.querySelector(".label-form [name=next]");
  if (following && trail[at + 1]) following.value = decodeURIComponent(pathOf(trail[at + 1]).split("/").pop());
  for (const [rel, text, target] of [["next", "Next →", trail[at + 1]], ["prev", "← Previous", trail[at - 1]]]) {
    if (target === undefined) continue;
    let link = steps.querySelector(`a[rel=${rel}]`);
    if (!link) {
      link = make("a", { rel, textContent: text });
      link.dataset.drawer = "";
      steps.prepend(link);
    }
    link.href = target;
  }
  const position = steps.parentElement.querySelector(".note") ?? make("span");
  if (position.textContent && !opener.closest(".turns")) return; // a session has its own order
  position.className = "note";
  position.textContent = `${at + 1} of ${trail.length} in the list`;
  steps.before(position);
}

// A label or a request to score again is sent without leaving the list. A label leads on to the next answer.
async function submitInDrawer(event) {
  const form = event.target.closest("dialog.drawer form");
  if (!form || event.defaultPrevented) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  try {
    const response = await fetch(form.action, { method: "POST", body, credentials: "same-origin" });
    if (!response.ok || !response.redirected) throw new Error(String(response.status));
    hasNewLabel = true;
    if (!(await fillDrawer(response.url))) return;
    const address = new URL(response.url);
    address.searchParams.delete("result");
    address.hash = "";
    history.replaceState(history.state, "", address);
    announcement.textContent = drawer.querySelector("[role=status]")?.textContent ?? "";
  } catch {
    location.reload(); // the full page of the answer, whose form shows the error
  }
}

function makeDrawer() {
  const dialog = make("dialog", { className: "drawer" });
  dialog.setAttribute("aria-label", "Answer");
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault(); // Escape goes back in history, like the close button
    leaveDrawer();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && event.offsetX < 0) leaveDrawer(); // a click on the backdrop
  });
  document.body.append(dialog);
  return dialog;
}

function closeButton(onclick) {
  return make("button", { type: "button", className: "close", textContent: "Close", onclick });
}

async function openDrawer(link) {
  const isOpen = Boolean(drawer?.open);
  if (!isOpen) {
    opener = link;
    trail = Array.from((link.closest("tbody") ?? link.parentElement).querySelectorAll("a[data-drawer]"), (a) => a.href);
  }
  try {
    if (!(await fillDrawer(link.href))) return;
    // The URL of the answer, which can be shared. Steps from answer to answer add no entries, so back closes the drawer.
    if (isOpen) history.replaceState(history.state, "", link.href);
    else history.pushState({ depth: 1 }, "", link.href);
  } catch {
    location.assign(link.href);
  }
}

function leaveDrawer() {
  fills += 1; // an answer that is still being fetched must not open the drawer again
  if (history.state?.depth) history.back();
  else closeDrawer();
}

async function closeDrawer() {
  drawer?.close();
  const address = opener?.href;
  if (hasNewLabel && address) {
    hasNewLabel = false;
    await refresh(["#list", "#worst"], () => false); // replaces a focused panel too; the focus is restored below
    opener = linkTo(address) ?? opener;
  }
  opener?.focus();
  opener = null;
}

function followHistory(event) {
  const isHome = location.pathname + location.search === home;
  if (event.state?.depth && !wasDrawer) {
    fillDrawer(location.href).catch(() => location.reload());
    return;
  }
  fills += 1;
  if (drawer?.open) closeDrawer();
  if (!isHome) location.reload(); // the page below the drawer does not match the URL
}

// --- live reload: parts with data-live are replaced with their current version ---

let staleNotice = null;

function isBusy(part) {
  return part.contains(document.activeElement) || part.contains(pointed) || part.contains(getSelection().anchorNode);
}

async function refresh(selectors = ["[data-live][id]"], isKept = isBusy) {
  if (document.visibilityState !== "visible" || document.querySelector("dialog[open]")) return;
  const parts = [...document.querySelectorAll(selectors.join())];
  if (!parts.length) return;
  try {
    const { response, document: fresh } = await fetchPage(location.href);
    if (response.redirected) return; // to the login page
    for (const part of parts.filter((part) => !isKept(part))) replace(part, fresh.getElementById(part.id));
    hideStaleNotice();
  } catch {
    showStaleNotice();
  }
}

function replace(part, fresh) {
  if (!fresh || !part.isConnected) return;
  const opened = [...part.querySelectorAll("details")].map((details) => details.open);
  keepSelection(part, fresh);
  document.adoptNode(fresh);
  fresh.querySelectorAll("details").forEach((details, index) => (details.open = opened[index] ?? details.open));
  part.replaceWith(fresh);
  prepareCharts(fresh);
}

function hideStaleNotice() {
  staleNotice?.remove();
  staleNotice = null;
}

function showStaleNotice() {
  if (staleNotice) return;
  const textContent = `Not refreshed since ${timeAlone.format(new Date())}: the server is unreachable.`;
  staleNotice = make("p", { className: "warn", textContent });
  document.querySelector(".foot")?.before(staleNotice);
}

// --- lists: the selection, links to copy, and live updates ---

const PICKED = "input[name=id]:checked";
const LIVE_INTERVAL = Math.min(5000, REFRESH_INTERVAL);
const LIVE_OVERLAP = 120000; // answers are not scored in the order in which they were given
const MAX_LIVE_ROWS = 100;
let tail = null;
let isPolling = false;

function keepSelection(from, to) {
  const picked = new Set(Array.from(from.querySelectorAll(PICKED), (box) => box.value));
  for (const box of to.querySelectorAll("input[name=id]")) box.checked ||= picked.has(box.value);
}

function select() {
  const box = document.activeElement.closest("tr")?.querySelector("input[name=id]");
  box?.click();
  if (box) announcement.textContent = `${document.querySelectorAll(PICKED).length} selected`;
  return Boolean(box);
}

async function copyLink(button) {
  const link = new URL(button.dataset.copy, location.href).href;
  try {
    await navigator.clipboard.writeText(link);
  } catch {
    prompt("Copy this link:", link); // the clipboard is available only over HTTPS and on localhost
    return;
  }
  announcement.textContent = "Link copied";
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy link"), 2000);
}

function switchTail(button) {
  const isOn = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", isOn);
  clearInterval(tail);
  if (isOn) tail = setInterval(addNewRows, LIVE_INTERVAL, button);
  announcement.textContent = isOn ? "New answers will appear at the top." : "Live updates stopped.";
}

const timeOf = (row) => Date.parse(row.querySelector("time").dateTime);

async function addNewRows(button) {
  if (isPolling || document.visibilityState !== "visible" || document.querySelector("dialog[open]")) return;
  const body = document.querySelector("#list tbody");
  const url = new URL(button.dataset.liveRows, location.href);
  url.searchParams.set("since", new Date(timeOf(body.rows[0]) - LIVE_OVERLAP).toISOString());
  let fresh = [];
  isPolling = true;
  try {
    const { response, document: fetched } = await fetchPage(url);
    if (response.redirected) switchTail(button); // to the login page
    else fresh = [...fetched.querySelectorAll("tr")];
    hideStaleNotice();
  } catch {
    showStaleNotice();
  }
  isPolling = false;
  const known = new Map(Array.from(body.rows, (row) => [row.dataset.row, row]));
  const added = fresh.filter((row) => !known.has(row.dataset.row));
  if (added.length && added.length === fresh.length) body.replaceChildren(); // more than one request returns
  for (const row of fresh) {
    const old = known.get(row.dataset.row);
    if (old?.isConnected) {
      if (isBusy(old)) continue;
      keepSelection(old, row);
      row.className = old.className;
      old.replaceWith(row);
    } else {
      row.className = "fresh";
      body.insertBefore(row, [...body.rows].find((other) => timeOf(other) < timeOf(row)) ?? null);
    }
  }
  while (body.rows.length > MAX_LIVE_ROWS) body.lastElementChild.remove();
  if (added.length) announcement.textContent = `${added.length} new ${added.length === 1 ? "answer" : "answers"}`;
}

// --- the keyboard ---

const PLACES = { o: "/", a: "/answers", l: "/alerts", w: "/worker" };
const HELP = [
  ["j / k", "next / previous answer, in the list and in the drawer"],
  ["Enter", "open the selected answer"],
  ["y / n", "label the opened answer, and open the next: it addresses the question / it does not"],
  ["p / c / s / u", "a drawn answer: in part / cannot tell / skip / undo"],
  ["x", "select the focused answer"],
  ["Escape", "close the drawer"],
  ["← →, Enter", "read the focused chart's values, open a point's answers"],
  ["/", "focus the filter"],
  ["g, then o, a, l or w", "go to overview, answers, alerts or worker"],
  ["?", "show this help"],
];
let afterG = false;

function isTyping(target) {
  return target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== "checkbox");
}

function handleKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const svg = event.target.closest("svg[data-plot]");
  const handled = (svg && stepChart(svg, event.key)) || goTo(event.key) || act(event.key);
  if (handled) event.preventDefault();
}

function goTo(key) {
  const goes = afterG && key in PLACES;
  afterG = key === "g";
  if (goes) location.assign(root + PLACES[key]);
  return goes;
}

function act(key) {
  if (key === "?") return help();
  if (key === "/") return focusFilter();
  if (key === "x") return select();
  if (press(key)) return true;
  if (key === "j" || key === "k") return step(key === "j" ? 1 : -1);
  return false;
}

const FILTER = "#filter";

function focusFilter() {
  const field = document.querySelector("main form.filters :is(input, select):not([type=hidden])");
  if (!field) location.assign(`${root}/answers${FILTER}`);
  else if (drawer?.open) {
    opener = field;
    leaveDrawer();
  }
  return field ? focusOn(field) : true;
}

// Keys press the buttons of the shown answer, in the drawer or on its page.

function press(key) {
  const button = (drawer?.open ? drawer : document).querySelector(`.label-form button[data-key="${CSS.escape(key)}"]`);
  button?.click();
  return Boolean(button);
}

function step(by) {
  const inside = drawer?.open ? drawer : document.querySelector("main:has(article.answer)");
  if (inside) {
    const link = inside.querySelector(`.steps a[rel=${by > 0 ? "next" : "prev"}]`);
    link?.click();
    return Boolean(link);
  }
  const links = [...document.querySelectorAll("main a[data-drawer]")].filter((link) => link.offsetParent);
  const focused = document.activeElement;
  const at = links.indexOf(focused.closest("tr")?.querySelector("a[data-drawer]") ?? focused);
  return focusOn(links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by]);
}

function focusOn(element) {
  element?.focus();
  return Boolean(element);
}

function help() {
  const dialog = make("dialog", { className: "help" });
  dialog.setAttribute("aria-label", "Keyboard shortcuts");
  const list = make("dl", { className: "facts" });
  for (const [keys, meaning] of HELP) {
    list.append(make("dt", { textContent: keys }), make("dd", { textContent: meaning }));
  }
  dialog.append(closeButton(() => dialog.close()), make("h2", { textContent: "Keyboard shortcuts" }), list);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return true;
}

// --- events: all listeners are on the document, because parts of the page are replaced ---

function handleClick(event) {
  const button = event.target.closest?.("[data-copy], [data-live-rows]");
  if (button) return button.dataset.copy ? copyLink(button) : switchTail(button);
  const link = event.target.closest?.("a[data-drawer]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  openDrawer(link);
}

function handleChange(event) {
  event.target.closest("form[data-choice]")?.requestSubmit();
  const note = document.querySelector("#selection .note");
  if (note) note.textContent = `Selected answers: ${document.querySelectorAll(PICKED).length}`;
}

let isLeaving = false;

// While the next page is loading, a key would label the answer that is still shown.
function submitOnce(event) {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (isLeaving) event.preventDefault();
  isLeaving = true;
}

function dropEmptyFields({ target, formData }) {
  if (target.method !== "get") return;
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
}

page.classList.add("scripted");
document.body.append(announcement);
prepareCharts(document);
document.addEventListener("click", handleClick);
document.addEventListener("change", handleChange);
document.addEventListener("formdata", dropEmptyFields);
document.addEventListener("submit", switchTheme);
document.addEventListener("submit", submitInDrawer);
document.addEventListener("submit", submitOnce);
document.addEventListener("keydown", handleKey);
document.addEventListener("pointerdown", beginDrag);
document.addEventListener("pointermove", drag, { passive: true });
document.addEventListener("pointerup", endDrag);
document.addEventListener("pointercancel", cancelDrag);
document.addEventListener("pointermove", followPointer, { passive: true });
document.addEventListener("focusout", (event) => event.target.closest?.("svg[data-plot]") && hideCross(event.target));
window.addEventListener("popstate", followHistory);
setInterval(() => refresh(), REFRESH_INTERVAL);
if (location.hash === FILTER) focusFilter();
storeZone();
