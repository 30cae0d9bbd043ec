// What a page cannot do by itself: plan while one types, say that an answer is on its way, follow its inputs, copy.
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

  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 250);
  };
  form.addEventListener("input", soon);

  // SQL begins with what was built
  const sql = document.getElementById("sql");
  sql.addEventListener("input", () => { sql.dataset.typed = "yes"; });
  for (const mode of form.querySelectorAll("input[name=mode]")) {
    mode.addEventListener("change", () => {
      const built = plan.querySelector("pre.copy");
      if (mode.value === "sql" && mode.checked && built && !sql.dataset.typed) sql.value = built.textContent;
    });
  }

  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || button.id !== "ask-button") return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
    button.setAttribute("aria-busy", "true");
    button.textContent = button.dataset.busy;
  });
  window.addEventListener("pageshow", () => { delete form.dataset.sent; });
  document.getElementById("plan-button").hidden = true;
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
