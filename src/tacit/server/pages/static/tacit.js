// What a page cannot do by itself: plan while one types, show the public clock, complete names, follow inputs, copy.
"use strict";

const addCopy = (root) => {
  for (const block of root.querySelectorAll("pre.copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = document.body.dataset.copy || "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "✓";
    });
    block.after(button);
  }
};

const form = document.querySelector("form[data-plan]");
if (form) {
  const plan = document.getElementById("plan");
  const sql = document.getElementById("sql");
  let waiting = 0;
  let latest = 0;

  const show = async () => {
    const mine = ++latest;
    const body = new URLSearchParams(new FormData(form));
    let reply;
    try {
      reply = await fetch(form.dataset.plan, { method: "POST", body, headers: { "Tacit-Part": "plan" }, redirect: "error" });
    } catch {
      return; // the server is gone, or the visit is over: asking says so
    }
    if (!reply.ok || mine !== latest) return;
    const written = await reply.text();
    if (mine !== latest) return;
    plan.replaceChildren(...new DOMParser().parseFromString(written, "text/html").body.childNodes);
    addCopy(plan);
    place();
  };

  // a refusal stands where the mistake is
  const place = () => {
    for (const slot of form.querySelectorAll(".slot")) slot.replaceChildren();
    const source = plan.querySelector(".problem-source");
    const slot = source && form.querySelector(`.slot[data-field="${source.dataset.field}"]`);
    if (slot) slot.append(...source.childNodes);
  };

  // until the new plan is there, the old price is not asked for
  const soon = () => {
    for (const button of plan.querySelectorAll("#ask-button, #learn-button")) button.disabled = true;
    clearTimeout(waiting);
    waiting = setTimeout(show, 250);
  };
  form.addEventListener("input", soon);

  // columns that a number cannot be of are not offered
  const narrow = (pair) => {
    const wanted = pair.querySelector("[name=what]").selectedOptions[0].dataset.of;
    const of = pair.querySelector("[name=of]");
    of.hidden = wanted === "none";
    for (const each of of.options) each.hidden = each.disabled = wanted === "number" && each.dataset.kind === "other";
    if (of.hidden || of.selectedOptions[0].disabled) of.value = "";
  };
  for (const pair of form.querySelectorAll(".pair:not(.filter)")) {
    narrow(pair);
    pair.addEventListener("change", () => narrow(pair));
  }

  // a filter has the keys of its column in a menu; when the last row is used, there is one more
  const filters = document.getElementById("filters");
  filters.addEventListener("input", (event) => {
    const row = event.target.closest(".filter");
    if (!row || event.target.name !== "column") return;
    const value = row.querySelector("[name=value]");
    value.setAttribute("list", event.target.selectedOptions[0].dataset.keys || "");
    const rows = filters.querySelectorAll(".filter");
    if (row === rows[rows.length - 1] && event.target.value) {
      const more = row.cloneNode(true);
      more.querySelector("[name=column]").value = "";
      more.querySelector("[name=value]").value = "";
      row.after(more);
    }
  });

  // SQL begins with what was built, and what is inserted follows it
  sql.setSelectionRange(sql.value.length, sql.value.length);
  sql.addEventListener("input", () => { sql.dataset.typed = "yes"; });
  for (const mode of form.querySelectorAll("input[name=mode]")) {
    mode.addEventListener("change", () => {
      const built = plan.querySelector("pre.copy");
      if (mode.value === "sql" && mode.checked && built && !sql.dataset.typed) sql.value = built.textContent;
    });
  }
  const insert = (text, from = sql.selectionStart) => {
    sql.setRangeText(text, from, sql.selectionEnd, "end");
    sql.focus();
    sql.dispatchEvent(new Event("input", { bubbles: true }));
  };
  for (const button of form.querySelectorAll(".insert")) {
    button.addEventListener("click", () => {
      const gap = /[')\p{L}\p{N}_"]$/u.test(sql.value.slice(0, sql.selectionStart)) ? " " : "";
      insert(gap + button.dataset.insert);
    });
  }

  // completion of names
  const names = JSON.parse(sql.dataset.names);
  const list = document.getElementById("names");
  let begins = 0;
  const close = () => { list.hidden = true; list.replaceChildren(); };
  const chosen = () => list.querySelector("[aria-selected=true]");
  const take = (option) => { const text = option.textContent; close(); insert(text, begins); close(); };
  const complete = () => {
    close();
    const before = sql.value.slice(0, sql.selectionStart);
    const word = (before.match(/[\p{L}_"][\p{L}\p{N}_]*$/u) || [""])[0];
    if (word.length < 1 || (before.slice(0, -word.length).split("'").length % 2) === 0) return;
    begins = before.length - word.length;
    const plain = word.toLowerCase().replace(/^"/, "");
    const found = names.filter((name) => name.toLowerCase().replace(/^"/, "").startsWith(plain) && name !== word);
    for (const name of found.slice(0, 8)) {
      const option = document.createElement("span");
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.textContent = name;
      option.addEventListener("mousedown", (event) => { event.preventDefault(); take(option); });
      list.append(option);
    }
    list.hidden = !found.length;
  };
  sql.addEventListener("input", complete);
  sql.addEventListener("blur", close);
  sql.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const now = chosen();
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown" || (event.key === "ArrowUp" && now)) {
      const next = event.key === "ArrowDown" ? (now ? now.nextSibling : list.firstChild) : now.previousSibling;
      if (now) now.setAttribute("aria-selected", "false");
      if (next) next.setAttribute("aria-selected", "true");
    } else if (event.key === "Enter" && now) take(now);
    else return;
    event.preventDefault();
  });

  // the public clock: T, 2T, 4T, 8T, then four ticks in each doubling
  const ticks = (every) => {
    const found = [1, 2, 4];
    for (let from = 8; from < 4096; from *= 2) for (let step = 0; step < 4; step += 1) found.push(from * (1 + step / 4));
    return found.map((tick) => tick * every * 1000);
  };
  const at = (time) => new Date(time).toLocaleTimeString();
  const count = (words) => {
    const all = ticks(Number(form.dataset.hold));
    const began = Date.now();
    const panel = document.getElementById("waiting");
    panel.hidden = false;
    plan.hidden = true;
    const look = () => {
      const passed = Date.now() - began;
      const next = Math.max(all.findIndex((tick) => tick > passed), 0);
      const from = next ? all[next - 1] : 0;
      const later = all.slice(next, next + 3).map((tick) => at(began + tick));
      document.getElementById("clock").textContent = `${words} at ${later[0]}, or else at ${later[1]}, ${later[2]} …`;
      document.getElementById("tick").value = (100 * (passed - from)) / (all[next] - from);
    };
    look();
    panel.scrollIntoView({ block: "nearest" });
    return setInterval(look, 200);
  };

  let running = 0;
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || !["ask-button", "learn-button"].includes(button.id)) return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
    form.setAttribute("aria-busy", "true");
    running = count(button.id === "ask-button" ? "The answer leaves" : "The facts are there");
  });
  window.addEventListener("pageshow", () => {
    delete form.dataset.sent;
    clearInterval(running);
    document.getElementById("waiting").hidden = true;
    plan.hidden = false;
  });
  document.getElementById("plan-button").hidden = true;
}

// a form that takes long says so
for (const button of document.querySelectorAll("[data-waits]")) {
  const panel = document.getElementById(button.dataset.waits);
  button.form.addEventListener("submit", (event) => { panel.hidden = event.submitter !== button; });
  window.addEventListener("pageshow", () => { panel.hidden = true; });
}

// a part of the page follows the inputs of a form
for (const inputs of document.querySelectorAll("form[data-live]")) {
  const part = document.getElementById(inputs.dataset.live);
  let waiting = 0;
  let latest = 0;

  const follow = async () => {
    const mine = ++latest;
    const address = `${inputs.action}?${new URLSearchParams(new FormData(inputs))}`;
    let written;
    try {
      written = await (await fetch(address, { headers: { "Tacit-Part": "live" } })).text();
    } catch {
      return; // the server is gone: the button says so
    }
    const found = new DOMParser().parseFromString(written, "text/html").body;
    const nodes = [...found.childNodes].map((node) => document.adoptNode(node));
    const pictures = nodes.flatMap((node) => (node.querySelectorAll ? [...node.querySelectorAll("img")] : []));
    await Promise.all(pictures.map((picture) => picture.decode().catch(() => {}))); // so that nothing flickers
    if (mine !== latest) return;
    part.replaceChildren(...nodes);
    addCopy(part);
    history.replaceState(null, "", address);
  };

  inputs.addEventListener("input", (event) => {
    const shown = inputs.querySelector(`output[for="${event.target.id}"]`);
    if (shown) shown.value = event.target.value;
    clearTimeout(waiting);
    waiting = setTimeout(follow, 150);
  });
  inputs.addEventListener("submit", (event) => {
    event.preventDefault();
    follow();
  });
  for (const button of inputs.querySelectorAll("[data-without-scripts]")) button.hidden = true;
}

addCopy(document);
