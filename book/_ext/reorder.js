"use strict";

/* Rank of each right candidate, from the labels (0 or 1) of a question's candidates, the best first. */
const rightRanks = (labels) => labels.flatMap((label, place) => (label ? [place + 1] : []));

function metricsOf(labels) {
  const ranks = rightRanks(labels);
  const precisions = ranks.map((rank, place) => (place + 1) / rank);
  return {
    p_at_1: labels[0],
    reciprocal_rank: 1 / ranks[0],
    average_precision: precisions.reduce((sum, precision) => sum + precision) / ranks.length,
  };
}

/* Rank of a right candidate -> the share of right candidates down to it. */
const precisionsOf = (labels) => new Map(rightRanks(labels).map((rank, place) => [rank, `${place + 1}/${rank}`]));

function formulasOf(labels) {
  const shares = precisionsOf(labels);
  return {
    p_at_1: labels[0] ? "rank 1 answers" : "rank 1 does not answer",
    reciprocal_rank: `1/${Math.min(...shares.keys())}`,
    average_precision: `(${[...shares.values()].join(" + ")}) / ${shares.size}`,
  };
}

function shuffled(items) {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

/* The neighbours move, not the item: it keeps the focus and the pointer. */
function move(item, place) {
  let at = [...item.parentElement.children].indexOf(item);
  for (; at < place; at++) item.before(item.nextElementSibling);
  for (; at > place; at--) item.after(item.previousElementSibling);
  item.scrollIntoView({ block: "nearest" });
}

function startReordering(box) {
  const list = box.querySelector("ol");
  const items = () => [...list.children];
  const labels = () => items().map((item) => Number(item.dataset.label));

  function show(before) {
    const values = metricsOf(labels());
    const formulas = formulasOf(labels());
    for (const row of box.querySelectorAll("[data-metric]")) {
      const [value, old] = [values, before].map((metrics) => metrics[row.dataset.metric]);
      row.cells[1].textContent = formulas[row.dataset.metric];
      row.querySelector("span").textContent = value.toFixed(3);
      row.querySelector("small").textContent = value === old ? "as before" : `${value > old ? "▲" : "▼"} from ${old.toFixed(3)}`;
    }
    const shares = precisionsOf(labels());
    items().forEach((item, place) => (item.querySelector("small span").textContent = shares.get(place + 1) ?? ""));
  }

  function tell(what) {
    const shown = [...box.querySelectorAll("[data-metric]")];
    const said = shown.map((row) => `${row.cells[0].textContent} ${row.querySelector("span").textContent}`);
    box.querySelector("[role=status]").textContent = `${what} ${said.join(", ")}.`;
  }

  const tellPlace = (item) =>
    tell(`“${item.querySelector("q").textContent}” is at rank ${items().indexOf(item) + 1} of ${items().length}.`);

  function moveAndTell(item, place) {
    const before = metricsOf(labels());
    move(item, Math.max(0, Math.min(place, items().length - 1)));
    show(before);
    tellPlace(item);
  }

  const orders = {
    bm25: () => items().sort((one, other) => one.dataset.bm25 - other.dataset.bm25),
    best: () => items().sort((one, other) => other.dataset.label - one.dataset.label),
    worst: () => items().sort((one, other) => one.dataset.label - other.dataset.label),
    shuffled: () => shuffled(items()),
  };

  box.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.step) {
      const item = button.closest("li");
      moveAndTell(item, items().indexOf(item) + Number(button.dataset.step));
    } else if (button?.dataset.order) {
      const before = metricsOf(labels());
      list.append(...orders[button.dataset.order]());
      show(before);
      tell(`${button.textContent}.`);
    }
  });

  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li");
    const at = items().indexOf(item);
    const place = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: items().length - 1 }[event.key];
    if (place === undefined) return;
    event.preventDefault();
    moveAndTell(item, place);
  });

  list.addEventListener("pointerdown", (event) => {
    const item = event.target.closest("li");
    const scrolls = event.pointerType !== "mouse" && !event.target.closest(".as2-handle");
    if (!item || scrolls || event.button !== 0 || event.target.closest("[data-step]")) return;
    const before = metricsOf(labels());
    const first = items().indexOf(item);
    const dragging = new AbortController();
    const { signal } = dragging;
    const drag = ({ clientY }) => {
      const above = items().filter((other) => {
        const { top, height } = other.getBoundingClientRect();
        return other !== item && top + height / 2 < clientY;
      });
      if (above.length === items().indexOf(item)) return;
      move(item, above.length);
      show(before);
    };
    const drop = () => {
      dragging.abort();
      item.classList.remove("as2-dragged");
      if (items().indexOf(item) !== first) tellPlace(item);
    };
    item.classList.add("as2-dragged");
    document.addEventListener("pointermove", drag, { signal });
    document.addEventListener("pointerup", drop, { signal });
    document.addEventListener("pointercancel", drop, { signal });
  });

  box.classList.add("as2-live");
}

document.querySelectorAll(".as2-reorder").forEach(startReordering);
