"use strict";

/* Random numbers from 0 to 1 that follow from a seed (mulberry32). */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/* The chances of 0 to `trials` successes. */
function binomial(trials, chance) {
  let logarithm = trials * Math.log1p(-chance);
  const chances = [Math.exp(logarithm)];
  for (let count = 1; count <= trials; count++) {
    logarithm += Math.log((trials - count + 1) / count) + Math.log(chance) - Math.log1p(-chance);
    chances.push(Math.exp(logarithm));
  }
  return chances;
}

/* The fewest gained questions whose mean difference is more than 1.96 standard errors above zero. */
function smallestGained(questions, lost) {
  let gained = lost + 1;
  while ((gained - lost) ** 2 <= 1.96 ** 2 * (gained + lost - (gained - lost) ** 2 / questions)) gained++;
  return gained;
}

function shareAbove(questions, gained, lost) {
  let share = 0;
  binomial(questions, lost).forEach((chance, count) => {
    if (chance <= 1e-9) return;
    const above = binomial(questions - count, gained / (1 - lost)).slice(smallestGained(questions, count));
    share += chance * above.reduce((sum, of) => sum + of, 0);
  });
  return share;
}

/* The share of test sets with a significant difference; lost and gain are shares of the questions. */
const powerOf = (questions, gain, lost) => shareAbove(questions, lost + gain, lost) + shareAbove(questions, lost, lost + gain);

/* The difference in questions of as many draws as there are questions: each is gained, lost or neither. */
function drawnDifference(questions, gained, lost, random) {
  let difference = 0;
  for (let drawn = 0; drawn < questions; drawn++) {
    const place = random();
    if (place < gained) difference++;
    else if (place < gained + lost) difference--;
  }
  return difference;
}

/* The 95 % interval of a test set in points; gained and lost are shares of its questions. */
function bootstrapInterval(questions, gained, lost, draws, random) {
  const differences = Array.from({ length: draws }, () => drawnDifference(questions, gained, lost, random));
  differences.sort((one, other) => one - other);
  const at = (share) => (100 * differences[Math.round(share * (draws - 1))]) / questions;
  return [at(0.025), at(0.975)];
}

/* A test set with a true gain: the shares of its questions that are gained and lost. */
function testSet(questions, gain, lost, random) {
  const counts = { gained: 0, lost: 0 };
  for (let question = 0; question < questions; question++) {
    const place = random();
    if (place < lost + gain) counts.gained++;
    else if (place < 2 * lost + gain) counts.lost++;
  }
  return [counts.gained / questions, counts.lost / questions];
}

function startBootstrap(box) {
  const lost = Number(box.dataset.lost) / 100;
  const steps = box.dataset.steps.split(" ").map(Number);
  const slider = (name) => box.querySelector(`[data-of=${name}]`);
  const lines = [...box.querySelectorAll(".as2-interval")];
  let seed = 1;

  function show() {
    const questions = steps[Number(slider("questions").value)];
    const points = Number(slider("gain").value);
    const random = randomFrom(seed);
    const intervals = lines.map(() => {
      const shares = testSet(questions, points / 100, lost, random);
      return bootstrapInterval(questions, ...shares, 200, random);
    });
    const significant = intervals.map(([low, high]) => low > 0 || high < 0);
    lines.forEach((line, place) => {
      line.setAttribute("x1", intervals[place][0]);
      line.setAttribute("x2", intervals[place][1]);
      line.classList.toggle("as2-significant", significant[place]);
    });
    for (const end of ["x1", "x2"]) box.querySelector(".as2-true").setAttribute(end, points);
    const count = significant.filter(Boolean).length;
    const sets = `${count} of ${lines.length} test sets of ${questions} questions show a significant difference`;
    box.querySelector(".as2-sets").textContent = sets;
    box.querySelector(".as2-share").textContent = `${Math.round(100 * powerOf(questions, points / 100, lost))} %`;
    for (const [name, value, unit] of [["questions", questions, "questions"], ["gain", points, "points"]]) {
      slider(name).setAttribute("aria-valuetext", `${value} ${unit}`);
      slider(name).parentElement.querySelector("output").textContent = value;
    }
  }

  box.addEventListener("input", show);
  box.querySelector("button").addEventListener("click", () => {
    seed++;
    show();
  });
  box.classList.add("as2-live");
}

document.querySelectorAll(".as2-bootstrap").forEach(startBootstrap);
