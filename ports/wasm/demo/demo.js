// The cafe recommends on this thread, and learns in the worker of wisp/device.js.
import {Device} from "./wisp/device.js";
import {loadRuntime} from "./wisp/runtime.js";

const FOLDER = "wisp-cafe", BASE = "base.wisp", MINE = "mine.wisp", YOU = "you";
// Public constants of this cafe, and the budget of each guest in all. Four training sessions are planned.
const NUM_GUESTS_PUBLIC = 2000, DELTA = 1e-5, EPSILON = 4, RUNS = 4;
const SHOWN = 8, BATCH_OF_EVENTS = 4000;

const at = (id) => document.getElementById(id);
const say = (sentence, failed = false) => {
  at("state").textContent = sentence;
  at("state").classList.toggle("failed", failed);
};

// Rounds up, as every figure of privacy must be.
const shownEpsilon = (epsilon) => Number.isFinite(epsilon) ? (Math.ceil(epsilon * 100) / 100).toFixed(2) : "no bound";

let runtime, model, device = null, history = [], running = null;

async function bytesOf(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: the server answered ${response.status}`);
  return response.arrayBuffer();
}

function itemButton({item, name}) {
  const row = document.createElement("li"), button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.dataset.item = item;
  row.append(button);
  return row;
}

function showList() {
  const begin = performance.now();
  const best = model.recommend(history, {count: SHOWN});
  performance.measure("recommend", {start: begin});
  at("for-you").replaceChildren(...best.map(itemButton));
  at("for-you-note").textContent =
      history.length ? "After what you ordered." : "What is popular: you have not ordered yet.";
  at("ordered").replaceChildren(...history.slice(-SHOWN).map((item) => {
    const row = document.createElement("li");
    row.textContent = model.itemName(item);
    return row;
  }));
  at("forget").disabled = !device || history.length === 0;
}

function showMenu() {
  const wanted = at("search").value.trim().toLowerCase();
  const items = Array.from({length: model.numItems}, (_, item) => ({item, name: model.itemName(item)}));
  at("menu").replaceChildren(...items.filter(({name}) => name.toLowerCase().includes(wanted)).map(itemButton));
}

async function order(item) {
  history.push(item);
  showList();
  say(`Ordered: ${model.itemName(item)}.`);
  if (device) await device.appendEvents([{user: YOU, item: model.itemKey(item), time: Date.now()}]);
  if (device) await showLog();
}

async function showLog() {
  const {events, users} = await device.countEvents();
  at("log-note").textContent = `${events.toLocaleString("en")} orders of ${
      users.toLocaleString("en")} guests are on this device. These counts are exact: they stay here.`;
  at("guests").disabled = running !== null || users > 1000;
  at("personalise").disabled = running !== null || users < 1000;
}

async function showBudget() {
  const files = await device.listFiles();
  if (!files.includes("privacy.ledger")) return;
  const {epsilonStated, epsilonLimit} = await device.budget({delta: DELTA});
  at("epsilon").value = epsilonStated;
  at("epsilon-note").textContent = `Epsilon ${shownEpsilon(epsilonStated)} of ${
      Number.isNaN(epsilonLimit) ? EPSILON : epsilonLimit} at delta ${DELTA}, for each guest.`;
  at("statement").textContent = await device.statement({delta: DELTA});
}

// Measured qualities, stored beside the models as the page's own notes.
async function qualities() {
  const files = await device.listFiles();
  return files.includes("quality.json") ? JSON.parse(new TextDecoder().decode(await device.readFile("quality.json"))) :
                                          [];
}

async function measure(label, file, epsilon) {
  const {ndcgAt10} = await device.evaluate(file);
  const rows = [...await qualities(), {label, epsilon, ndcg: ndcgAt10}];
  await device.writeFile("quality.json", new TextEncoder().encode(JSON.stringify(rows)));
}

async function showQuality() {
  const rows = (await qualities()).map(({label, epsilon, ndcg}) => {
    const row = document.createElement("tr");
    for (const text of [label, shownEpsilon(epsilon), ndcg.toFixed(4)]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      row.append(cell);
    }
    return row;
  });
  at("quality").tBodies[0].replaceChildren(...rows);
}

async function inviteGuests() {
  const {items, guests} = JSON.parse(new TextDecoder().decode(await bytesOf("guests.json")));
  const events = guests.flatMap(({user, orders}) => orders.map(([item, time]) => ({user, item: items[item], time})));
  for (let i = 0; i < events.length; i += BATCH_OF_EVENTS) {
    await device.appendEvents(events.slice(i, i + BATCH_OF_EVENTS));
    say(`${Math.min(i + BATCH_OF_EVENTS, events.length).toLocaleString("en")} of ${
        events.length.toLocaleString("en")} orders.`);
  }
  await measure("as shipped", BASE, 0);
  say("The guests have been here. Now the model can learn from them.");
}

async function personalise() {
  const mine = (await device.listFiles()).includes(MINE);
  const stop = new AbortController();
  at("stop").onclick = () => stop.abort();
  at("stop").hidden = at("progress").hidden = false;
  const begin = performance.now();
  const result = await device.personalise({
    model: mine ? MINE : BASE,
    output: MINE,
    epsilon: EPSILON,
    plannedRuns: RUNS,
    budgetEpsilon: EPSILON,
    delta: DELTA,
    numRecordsPublic: NUM_GUESTS_PUBLIC,
    unit: "user",
    expectedBatch: 128,
    epochs: 3,
    learningRate: 0.003,
    signal: stop.signal,
    onProgress: ({step, numSteps, epsilon}) => {
      at("progress").value = step / numSteps;
      say(`Step ${step} of ${numSteps}.${Number.isNaN(epsilon) ? "" : ` Epsilon ${shownEpsilon(epsilon)} so far.`}`);
    },
  });
  performance.measure("learn", {start: begin});
  const {epsilonStated} = await device.budget({delta: DELTA});
  await measure("personalised", MINE, epsilonStated);
  await useModel();
  say(`Learned in ${result.numSteps} steps. The list is the personalised model's now.`);
}

// Opens the newest model in the store.
async function useModel() {
  const mine = (await device.listFiles()).includes(MINE);
  const fresh = runtime.openModel(await device.readFile(mine ? MINE : BASE), {name: mine ? MINE : BASE});
  model.close();
  model = fresh;
  showList();
}

// Runs one task at a time, and shows errors.
async function run(task) {
  if (running) return;
  running = task;
  at("guests").disabled = at("personalise").disabled = true;
  try {
    await task();
  } catch (error) {
    say(error.message, true);
  } finally {
    running = null;
    at("stop").hidden = at("progress").hidden = true;
    await refresh();
  }
}

async function refresh() {
  try {
    await showLog();
    await showBudget();
    await showQuality();
    showList();
  } catch (error) {
    say(error.message, true);
  }
}

async function reset() {
  await device?.close();
  device = null;
  await Device.delete(FOLDER);
  location.reload();
}

async function begin() {
  const shipped = bytesOf("cafe.wisp");
  runtime = await loadRuntime();
  model = runtime.openModel(await shipped, {name: "cafe.wisp"});
  showList();
  performance.mark("first-list");
  showMenu();
  say("Ready. Orders are not kept yet: opening this page's storage.");
  device = await Device.open(FOLDER);
  if (!(await device.listFiles()).includes(BASE)) await device.writeFile(BASE, await bytesOf("cafe.wisp"));
  history = [...await device.history({model: BASE, user: YOU}), ...history];
  await useModel();
  await refresh();
  say(history.length ? "Welcome back: your orders are still here." : "Ready.");
  performance.mark("ready");
}

document.addEventListener("click", ({target}) => {
  if (target.dataset?.item) order(Number(target.dataset.item)).catch((error) => say(error.message, true));
});
at("search").addEventListener("input", showMenu);
at("guests").addEventListener("click", () => run(inviteGuests));
at("personalise").addEventListener("click", () => run(personalise));
at("forget").addEventListener(
    "click", () => run(async () => {
               await device.eraseUser(YOU);
               history = [];
               say("Your orders are erased. What the model learned from them stays within its guarantee.");
             }));
at("reset").addEventListener("click", () => reset().catch((error) => say(error.message, true)));
begin().catch((error) => say(error.message, true));
