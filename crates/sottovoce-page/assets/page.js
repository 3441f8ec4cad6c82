// The pages work without this. It finds while one types, shows a message beside its conversation, streams answers, shows what is
// new, and hides what is shown once the page is locked.
"use strict";
(() => {
  const $ = (selector, of = document) => of.querySelector(selector);
  const every = (selector, of = document) => [...of.querySelectorAll(selector)];
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const html = (text) => {
    const holder = document.createElement("template");
    holder.innerHTML = text;
    return holder.content;
  };
  // A locked page answers 401; then nothing of it stays on the screen.
  const ask = async (url, options) => {
    const answer = await fetch(url, { credentials: "same-origin", cache: "no-store", ...options });
    if (answer.status === 401) { location.reload(); await wait(1e6); }
    return answer;
  };

  const find = $("#find");
  if (find) {
    const rows = every("#conversations > li");
    const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
    find.addEventListener("input", () => {
      const words = plain(find.value).split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = plain(row.dataset.text);
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      $("#none").hidden = shown > 0;
    });
  }

  const panel = $("#panel");
  let opener = null;
  const close = () => {
    if (!panel || panel.hidden) return;
    panel.hidden = true;
    panel.replaceChildren();
    opener?.focus();
  };
  if (panel) {
    document.addEventListener("click", async (event) => {
      const link = event.target.closest("a[data-panel]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      const answer = await ask(link.href + "&part=1");
      if (!answer.ok) { location.assign(link.href); return; }
      const button = document.createElement("button");
      button.className = "quiet close";
      button.textContent = "✕";
      button.setAttribute("aria-label", "Close");
      button.addEventListener("click", close);
      const content = html(await answer.text());
      // The page has its own first heading.
      const heading = content.querySelector("h1");
      if (heading) heading.setAttribute("aria-level", "2");
      panel.replaceChildren(button, content);
      panel.hidden = false;
      opener = link;
      button.focus();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  }
  $("#pick")?.classList.add("scripted");

  for (const here of every("nav [aria-current]")) here.parentElement.scrollLeft = here.offsetLeft - 60;

  const timeline = $("#timeline");
  let isStreaming = false;
  const isAtEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 160;
  const toEnd = () => scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
  const add = (content) => {
    const wasAtEnd = isAtEnd();
    const days = new Set(every(".day", timeline).map((day) => day.textContent));
    for (const day of every(".day", content)) if (days.has(day.textContent)) day.remove();
    $("#empty")?.remove();
    timeline.append(content);
    if (wasAtEnd) toEnd();
  };
  const fetched = async (address) => html(await (await ask(address)).text());
  // The addresses of what is shown, the oldest first.
  const shown = [location.href];
  // Something was forgotten: it goes at once. What is typed and ticked stays.
  const renew = async () => {
    const pages = await Promise.all(shown.map(fetched));
    const fresh = pages.map((page) => $("#timeline", page));
    const picked = new Set(every(".pick:checked", timeline).map((pick) => pick.value));
    const drafts = every(".draft", timeline), wasAtEnd = isAtEnd();
    timeline.replaceChildren(...fresh.flatMap((part) => [...part.childNodes]), ...drafts);
    Object.assign(timeline.dataset, fresh.at(-1).dataset);
    for (const pick of every(".pick", timeline)) pick.checked = picked.has(pick.value);
    if (opener && !panel.hidden) {
      opener = $(`#${opener.closest("article").id} .when`);
      if (!opener) close();
    }
    if (wasAtEnd) toEnd();
  };
  // Older messages come above what is read, which stays in its place.
  $("main")?.addEventListener("click", async (event) => {
    const link = event.target.closest("#older a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const page = await fetched(link.href), first = $(".said", timeline), old = $(".day", timeline);
    const top = first.getBoundingClientRect().top, days = every("#timeline .day", page);
    if (days.at(-1)?.textContent === old?.textContent) old.remove();
    timeline.prepend(...$("#timeline", page).childNodes);
    shown.unshift(link.href);
    const further = $("#older", page);
    if (further) $("#older").replaceWith(further); else $("#older").remove();
    scrollBy({ top: first.getBoundingClientRect().top - top, behavior: "instant" });
    $("#older a")?.focus({ preventScroll: true });
  });
  const look = async () => {
    const { live, last, gone } = timeline.dataset;
    const answer = await ask(`${live}?after=${last}&gone=${gone}`);
    if (answer.status === 205) return renew();
    if (answer.status !== 200) return;
    timeline.dataset.last = answer.headers.get("x-last");
    add(html(await answer.text()));
  };
  const follow = async () => {
    for (;;) {
      await wait(document.hidden ? 5000 : 1000);
      if (isStreaming) continue;
      try { await look(); } catch { await wait(4000); }
    }
  };
  if (timeline?.dataset.live) {
    if (!location.hash && !location.search && timeline.childElementCount > 3) toEnd();
    follow();
  }
  $(".said.target")?.scrollIntoView({ block: "center", behavior: "instant" });

  const talk = $("#talk");
  if (talk) {
    const box = $("textarea", talk), stop = $("#stop"), status = $("#status");
    const draft = (role, who, text) => {
      const article = document.createElement("article");
      article.className = `said ${role} draft`;
      const name = document.createElement("p"), words = document.createElement("div");
      name.className = "who"; name.textContent = who;
      // A screen reader speaks the answer as it comes.
      if (role === "assistant") words.setAttribute("role", "log");
      words.className = "words"; words.dir = "auto"; words.textContent = text;
      article.append(name, words);
      $("#empty")?.remove();
      timeline.append(article);
      return article;
    };
    const run = async (action) => {
      const form = new URLSearchParams(new FormData(talk));
      form.set("do", action);
      const isOff = form.has("off");
      if (action === "say" && !box.value.trim()) return;
      isStreaming = true;
      status.textContent = "";
      const drafts = [];
      if (action === "say") { drafts.push(draft("user", "You", box.value.trim())); drafts[0].classList.add("ended"); }
      const answer = draft("assistant", "Assistant", "");
      drafts.push(answer);
      const words = $(".words", answer);
      box.value = "";
      toEnd();
      for (const button of every("button[name=do]", talk)) button.disabled = true;
      let turn = 0, failed = null;
      stop.onclick = () => {
        stop.disabled = true;
        const chars = [...words.textContent].length;
        ask(talk.dataset.stop, { method: "POST", body: new URLSearchParams({ csrf: form.get("csrf"), turn, chars }) });
      };
      const take = (line) => {
        if (line.turn) { turn = line.turn; stop.hidden = false; stop.disabled = false; }
        if (line.text && !stop.disabled) { const end = isAtEnd(); status.textContent = ""; words.append(line.text); if (end) toEnd(); }
        if (line.thinking) status.textContent = line.thinking;
        if (line.done) status.textContent = line.done;
        if (line.failed) failed = line.failed;
      };
      try {
        const reply = await ask(talk.action, { method: "POST", body: form, headers: { accept: "application/x-ndjson" } });
        if (!reply.ok) throw new Error(await reply.text());
        const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ;) {
          const { value, done } = await reader.read();
          if (done) break;
          rest += value;
          const lines = rest.split("\n");
          rest = lines.pop();
          for (const line of lines) if (line) take(JSON.parse(line));
        }
      } catch (error) { failed = { what: error.message, help: "" }; }
      stop.hidden = true;
      for (const button of every("button[name=do]", talk)) button.disabled = false;
      if (failed) status.textContent = `${failed.what} ${failed.help}`;
      if (isOff && !failed) {
        for (const article of drafts) {
          article.classList.add("ended");
          const mark = document.createElement("p");
          mark.className = "mark";
          mark.textContent = "off the record";
          article.append(mark);
        }
      } else {
        // What is stored takes the place of what was streamed.
        for (const article of drafts) article.remove();
        try { await look(); } catch { /* The next look will find it. */ }
      }
      isStreaming = false;
      box.focus();
      toEnd();
    };
    talk.addEventListener("submit", (event) => {
      event.preventDefault();
      run(event.submitter?.value || "say");
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); run("say"); }
    });
  }

  const going = async () => {
    const progress = $("#progress[data-refresh]");
    if (progress) {
      for (;;) {
        await wait(400);
        const answer = await ask("/live/health");
        if (answer.status !== 200) { location.reload(); return; }
        progress.innerHTML = html(await answer.text()).querySelector("#progress").innerHTML;
      }
    }
    if ($(".notice[data-refresh]")) { await wait(1200); location.reload(); }
  };
  going();

  const guard = async () => {
    if (!$(".top .lock")) return;
    for (;;) {
      await wait(5000);
      try { await ask("/live/entry"); } catch { /* The server is away. Nothing that is shown is wrong. */ }
    }
  };
  guard();
})();
