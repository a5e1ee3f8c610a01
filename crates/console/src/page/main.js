// The page: login, views, keys.

import { view as collections } from "./collections.js";
import { Refused, isLoggedIn, logIn, logOut, run, site } from "./door.js";
import { element, labelled, replace } from "./elements.js";
import * as now from "./now.js";
import { view as operations } from "./operations.js";
import * as query from "./query.js";
import { view as reports } from "./reports.js";
import { view as slow } from "./slow.js";
import { LANGUAGES, choose, languageNow, text } from "./texts.js";

const VIEWS = { now: now.view, collections, slow, operations, query: query.view };
const header = document.getElementById("header");
const place = document.getElementById("view");
const notice = document.getElementById("notice");

let leave = () => {};
let isLoginNeeded = true;
let host = "";

export const viewNow = () => {
  const name = location.hash.slice(1);
  return Object.hasOwn(VIEWS, name) ? name : "now";
};

/// Shows a short message, which screen readers say.
const tell = (message) => replace(notice, message);

const languageChoice = () =>
  element(
    "select",
    {
      "aria-label": text("language"),
      id: "language",
      change: (event) => {
        choose(event.target.value);
        show();
      },
    },
    Object.entries(LANGUAGES).map(([name, label]) => element("option", { value: name, selected: name === languageNow() }, label)),
  );

const drawHeader = () => {
  const links = Object.keys(VIEWS).map((name, index) =>
    element("a", { href: `#${name}`, "aria-current": name === viewNow() && "page", title: String(index + 1) }, text(name)),
  );
  replace(
    header,
    element("h1", {}, "Bunko", element("span", { class: "host" }, host)),
    isLoggedIn() ? element("nav", { "aria-label": text("views") }, links) : null,
    element(
      "div",
      { class: "end" },
      languageChoice(),
      isLoggedIn() && isLoginNeeded ? element("button", { type: "button", id: "log-out", click: end }, text("logOut")) : null,
    ),
  );
};

/// Draws the page anew: another view, or another language.
const show = () => {
  leave();
  leave = () => {};
  document.documentElement.lang = languageNow();
  replace(document.getElementById("skip"), text("skip"));
  tell("");
  drawHeader();
  if (!isLoggedIn()) return drawLogin();
  document.title = `${text(viewNow())} – Bunko`;
  leave = VIEWS[viewNow()](place, tell) ?? (() => {});
};

const begin = async (user, password, database) => {
  await logIn(user, password, database);
  host = await run("admin", { hello: 1 })
    .then((hello) => hello.me ?? location.host)
    .catch(() => location.host);
  now.start();
  show();
};

const end = async () => {
  await logOut();
  now.forget();
  query.forget();
  host = "";
  show();
};

const drawLogin = (message = "") => {
  document.title = `${text("logIn")} – Bunko`;
  const user = element("input", { id: "user", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" });
  const password = element("input", { id: "password", type: "password", autocomplete: "current-password" });
  const database = element("input", { id: "user-database", value: "admin", spellcheck: "false", autocapitalize: "none" });
  const trouble = element("p", { class: "trouble", role: "alert", hidden: message === "" }, message);
  const button = element("button", { class: "main" }, text("logIn"));
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await begin(user.value, password.value, database.value);
    } catch (error) {
      const isWrong = error instanceof Refused && error.status === 401;
      replace(trouble, isWrong ? text("wrongLogin") : error.message);
      trouble.hidden = false;
      password.value = "";
      password.focus();
    } finally {
      button.disabled = false;
    }
  };
  replace(
    place,
    element(
      "form",
      { class: "login", submit },
      element("h2", {}, text("logIn")),
      trouble,
      labelled(text("user"), user),
      labelled(text("password"), password),
      labelled(text("userDatabase"), database),
      button,
    ),
  );
  user.focus();
};

const isTyping = (target) => ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);

addEventListener("keydown", (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || !isLoggedIn()) return;
  const name = event.key === "/" ? "query" : Object.keys(VIEWS)[Number(event.key) - 1];
  if (name === undefined) return;
  event.preventDefault();
  if (name === viewNow()) document.getElementById("query-text")?.focus();
  else location.hash = name;
});
addEventListener("hashchange", () => {
  if (location.hash === "#view") return;
  show();
});
addEventListener("session-ended", () => {
  now.forget();
  show();
  if (isLoginNeeded) drawLogin(text("sessionEnded"));
  else begin("", "", "").catch((error) => tell(error.message));
});

const facts = await site();
isLoginNeeded = facts.login;
if (facts.reports) VIEWS.reports = reports;
if (isLoginNeeded) show();
else await begin("", "", "").catch((error) => tell(`${text("unreachable")} ${error.message}`));
