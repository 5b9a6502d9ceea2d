"use strict";
/* What a page does is written in its attributes: see page.py. */
(() => {
  const all = (where, what) => Array.from(where.querySelectorAll(what));
  const root = document.documentElement;

  /* ------------------------------------------------------------ light or dark */
  const theme = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  nameTheme();
  prefersDark.addEventListener("change", nameTheme);
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });

  /* ------------------------------------------------ one group, wherever it is shown */
  const shown = all(document, "[data-group]");
  const told = all(document, "[data-told]");
  const words = new Map(
    all(document, "[data-words]").map((node) => [node.dataset.group, node.dataset.words])
  );
  let pinned = null;
  let pointed = null;
  const show = () => {
    const group = pointed === null ? pinned : pointed;
    root.classList.toggle("pointing", group !== null);
    for (const node of shown) {
      node.classList.toggle("on", node.dataset.group === group);
      if (node.matches("button")) {
        node.setAttribute("aria-pressed", String(node.dataset.group === pinned));
      }
    }
    for (const node of told) {
      node.textContent = group === null ? node.dataset.told : words.get(group) || "";
    }
  };
  const groupOf = (event) => {
    const node = event.target.closest && event.target.closest("[data-group]");
    return node ? node.dataset.group : null;
  };
  document.addEventListener("pointerover", (event) => {
    const near = event.target.closest && event.target.closest("[data-points]");
    const group = near ? groupOf(event) : null;
    if (group !== pointed) {
      pointed = group;
      show();
    }
  });
  document.addEventListener("click", (event) => {
    const pins = event.target.closest && event.target.closest("[data-pins], button[data-group]");
    if (!pins || event.target.closest("a")) return;
    const group = groupOf(event);
    pinned = group === pinned ? null : group;
    show();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    pinned = pointed = null;
    show();
  });
  show();

  /* ------------------------------------------------------------------ sorting */
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const raw = "value" in cell.dataset ? cell.dataset.value : cell.textContent.trim();
    const number = raw === "" ? NaN : Number(raw);
    return Number.isNaN(number) ? raw : number;
  };
  const compare = (one, other) => {
    if (one === "" || other === "") return (one === "") - (other === "");
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), undefined, { numeric: true });
  };
  for (const table of all(document, "table[data-sort]")) {
    const headings = all(table, "thead th");
    headings.forEach((heading, column) => {
      const button = heading.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const numbers = "number" in heading.dataset;
        const before = heading.getAttribute("aria-sort");
        const first = numbers ? "descending" : "ascending";
        const second = numbers ? "ascending" : "descending";
        const order = before === first ? second : first;
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", order);
        const body = table.tBodies[0];
        const rows = Array.from(body.rows);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => {
          const one = valueOf(a, column);
          const other = valueOf(b, column);
          const missing = one === "" || other === "";
          return (missing ? 1 : sign) * compare(one, other);
        });
        body.append(...rows);
      });
    });
  }

  /* ---------------------------------------------------------------- filtering */
  const textOf = (node) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const parts = [];
    while (walker.nextNode()) parts.push(walker.currentNode.data);
    return parts.join(" ").toLowerCase().replace(/\s+/g, " ");
  };
  /* Whether a text has some words; a number must not be a part of another one. */
  const has = (text, words) => {
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
      const around = [text.slice(at - 1, at + 1), text.slice(at + words.length - 1).slice(0, 2)];
      if (!around.some((pair) => /^\d\d$/.test(pair))) return true;
    }
    return false;
  };
  for (const input of all(document, "input[data-filter]")) {
    const target = document.querySelector(input.dataset.filter);
    const items = target.tBodies ? Array.from(target.tBodies[0].rows) : Array.from(target.children);
    const count = document.getElementById(input.getAttribute("aria-describedby"));
    const texts = items.map(textOf);
    const filter = () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      /* "group 17" is that group, if there is one; else whatever has both words. */
      const whole = texts.some((text) => has(text, wanted.join(" ")));
      const looked = whole ? [wanted.join(" ")] : wanted;
      let left = 0;
      items.forEach((item, i) => {
        item.hidden = !looked.every((words) => has(texts[i], words));
        left += item.hidden ? 0 : 1;
      });
      if (count) count.textContent = `${left} of ${items.length}`;
    };
    input.addEventListener("input", filter);
    filter();
  }

  /* ------------------------------------------------------- opening and closing */
  for (const button of all(document, "button[data-open]")) {
    const target = document.querySelector(button.dataset.open);
    const cards = () => all(target, ":scope > details");
    const name = () => {
      button.textContent = cards().every((card) => card.open) ? "Close all" : "Open all";
    };
    button.addEventListener("click", () => {
      const open = !cards().every((card) => card.open);
      for (const card of cards()) card.open = open;
      name();
    });
    target.addEventListener("toggle", name, true);
    name();
  }
  const openTarget = () => {
    const id = decodeURIComponent(window.location.hash.slice(1));
    const node = id && document.getElementById(id);
    if (node && node.tagName === "DETAILS") node.open = true;
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();

  /* ---------------------------------------------------------------- downloads */
  const held = document.getElementById("data");
  const data = held ? JSON.parse(held.textContent) : {};
  const numbersOf = ({ bytes, width }) => {
    const raw = Uint8Array.from(atob(bytes), (char) => char.charCodeAt(0));
    const view = new DataView(raw.buffer);
    const read = width === 1 ? (i) => view.getUint8(i) : (i) => view.getUint16(2 * i, true);
    return Array.from({ length: raw.length / width }, (_, i) => read(i));
  };
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const asCsv = ({ header, names, columns, first }) => {
    const parts = columns.map(numbersOf);
    const lines = [header.map(quoted).join(",")];
    for (let i = 0; i < parts[0].length; i += 1) {
      const name = names ? quoted(names[i]) : String(i);
      lines.push([name, ...parts.map((part) => part[i] + first)].join(","));
    }
    return `${lines.join("\n")}\n`;
  };
  for (const button of all(document, "button[data-download]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const file = data[button.dataset.download];
      const blob = new Blob([asCsv(file)], { type: "text/csv" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = file.file;
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();
