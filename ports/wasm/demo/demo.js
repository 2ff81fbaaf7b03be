// The cafe recommends on this thread, and learns in the worker of wisp/device.js.
import {readCatalogue, readLog} from "./csv.js";
import {Buttons, markOf, row} from "./lists.js";
import {drawChart, drawJar} from "./pictures.js";
import {Device} from "./wisp/device.js";
import {loadRuntime} from "./wisp/runtime.js";

const FOLDER = "wisp-cafe", BASE = "base.wisp", MINE = "mine.wisp", NOTES = "notes.json", YOU = "you";
// The visitor's own items and events carry this before their keys, so that they differ from the cafe's.
const OWN = "own:";
// Public constants of this cafe. The budget of each guest is divided over four lessons.
const GUESTS = 2000, DELTA = 1e-5, LESSONS = 4, EPSILONS = [0.5, 1, 2, 4, 8];
const SHOWN = 10, BATCH_OF_EVENTS = 4000, TICK_MS = 200;

const at = (id) => document.getElementById(id);
const say = (sentence, failed = false) => {
  at("state").textContent = sentence;
  at("state").classList.toggle("failed", failed);
};
const fail = (error) => say(error.message, true);
const thousands = (number) => number.toLocaleString("en");

// Rounds up, as every figure of privacy must be.
const shownEpsilon = (epsilon) => Number.isFinite(epsilon) ? (Math.ceil(epsilon * 100) / 100).toFixed(2) : "no bound";
// The most of 100 guesses that can be right whether one guest was here, for somebody who would be right in 50 without
// the model.
const worstGuess = (epsilon) => Math.min(100, Math.ceil(100 * (Math.exp(epsilon) + DELTA) / (1 + Math.exp(epsilon))));

// The meaning of the protection in words, up to an epsilon.
const LEVELS = [
  {upTo: 1, words: "Well hidden: the lessons say little about any guest."},
  {upTo: 2, words: "Half hidden: the lessons can say much about a guest."},
  {upTo: Infinity, words: "Hardly hidden: the lessons can say nearly everything about a guest."}
];

let runtime, model, device = null, history = [], running = null, guests = null;
// The page's own notes: measured qualities, and the visitor's own catalogue.
let notes = {quality: [], people: GUESTS, hidden: null, measured: null, finished: null};
let learned = false;  // a lesson has made a model
let percent = 0;      // spent of a guest's budget, rounded up
let unsure = false;   // a lesson runs, so that more may be spent than `percent`
let statements = {of: "", accounting: {}};  // the ledger's statement, and the state of the ledger that it is of
let list = [], before = null;  // the list that is shown, and the one before it

async function bytesOf(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: the server answered ${response.status}`);
  return response.arrayBuffer();
}

// A button that cannot be used keeps the focus, and says why.
function allow(id, why) {
  at(id).setAttribute("aria-disabled", String(why !== ""));
  if (at(`${id}-why`)) at(`${id}-why`).textContent = why;
}
const onClick = (id, action) => at(id).addEventListener("click", () => {
  if (at(id).getAttribute("aria-disabled") !== "true") action();
});

// Resolves with true if the visitor agrees.
function ask(what, yes) {
  at("ask-what").textContent = what;
  at("ask-yes").textContent = yes;
  at("ask").returnValue = "no";
  at("ask").showModal();
  return new Promise((resolve) => {
    at("ask").addEventListener("close", () => resolve(at("ask").returnValue === "yes"), {once: true});
  });
}

const forYou = new Buttons(at("for-you"), (item) => order(item).catch(fail));
const menu = new Buttons(at("menu"), (item) => order(item).catch(fail));

// `change` says what happened since the list that is shown, for the words above it; "" if nothing did.
function showList(change = "") {
  const begin = performance.now(), excluded = notes.hidden === null ? [] : [notes.hidden];
  const best = model.recommend(history, {count: SHOWN, excluded});
  performance.measure("recommend", {start: begin});
  if (change) before = list;
  list = best;
  forYou.show(best.map(({item, name}, i) => ({item, name, mark: before && markOf(item, i, before)})));
  at("earlier").hidden = !before?.length;
  at("before").replaceChildren(...(before ?? []).map(({name}) => row(name)));
  const places = Math.min(SHOWN, shownItems().length);
  const few = best.length >= places ? "" :
      ` ${best.length} of ${places} places are filled: other items were not learned yet. More events, or the slider ` +
          "further to the right before the first lesson, teach it more.";
  const moved = before ? best.filter(({item}, i) => before[i]?.item !== item).length : 0;
  at("for-you-note").textContent =
      (best.length === 0 ? (learned ? "Nothing to show yet." : "Nothing to show before it has learned from your log.") :
       change            ? `${change}: ${moved} of ${best.length} places changed.` :
       history.length    ? "After what you ordered." :
                           "What is popular: you have not ordered yet.") +
      (learned ? few : "");
  at("ordered-none").hidden = history.length > 0;
  at("ordered").replaceChildren(...history.slice(-SHOWN).map((item) => row(model.itemName(item))));
  allow("forget", device && history.length > 0 ? "" : "nothing was ordered");
}

// The items of the cafe, or of the visitor's catalogue.
const shownItems = () => Array.from({length: model.numItems}, (_, item) => ({item, name: model.itemName(item)}))
                             .filter(({item}) => notes.hidden === null || model.itemKey(item).startsWith(OWN));

function showMenu() {
  const wanted = at("search").value.trim().toLowerCase();
  menu.show(shownItems().filter(({name}) => name.toLowerCase().includes(wanted)));
}

async function order(item) {
  history.push(item);
  showList(`After ${model.itemName(item)}`);
  say(`Ordered: ${model.itemName(item)}.`);
  if (device) await device.appendEvents([{user: YOU, item: model.itemKey(item), time: Date.now()}]);
  if (device) await showState();
}

const epsilonChosen = () => EPSILONS[Number(at("protection").value)];
const levelOf = (epsilon) => LEVELS.find(({upTo}) => epsilon <= upTo).words;
const percentOf = (epsilon, limit) => Math.min(100, Math.ceil(100 * epsilon / limit));

function showProtection(fixed) {
  const epsilon = epsilonChosen(), worst = worstGuess(epsilon);
  at("protection").disabled = fixed;
  at("protection").setAttribute("aria-valuetext", `${levelOf(epsilon)} At most ${worst} of 100 guesses are right`);
  at("protection-note").textContent =
      `${levelOf(epsilon)} Guess from the model whether one guest was here: even who knows all others is right in at ` +
      `most ${worst} of 100 cases. A coin is in 50.${fixed ? " Chosen before the first lesson, and fixed since." : ""}`;
}

async function budget() {
  return (await device.listFiles()).includes("privacy.ledger") ? device.budget({delta: DELTA}) : null;
}

// Shows what the log and the ledger say, and which buttons that allows.
async function showState() {
  const {events, users} = await device.countEvents(), spent = await budget(), planned = spent?.hasPlan === 1;
  const left = planned ? spent.runsLeft : LESSONS, begun = planned && spent.epsilonStated > 0;
  await readStatements(begun ? spent : null);
  if (begun) {
    const place = EPSILONS.findIndex((epsilon) => epsilon >= spent.epsilonLimit - 1e-9);
    at("protection").value = place < 0 ? EPSILONS.length - 1 : place;
  }
  showProtection(begun);
  if (users > 1) at("log-note").textContent =
      `${thousands(events)} orders of ${thousands(users)} guests are in this page, and nowhere else.`;
  const busy = running === null ? "" : "Wait for what runs.", visited = users >= Math.min(50, notes.people);
  allow("guests", visited ? "They have been here." : busy);
  allow("learn", busy || (!visited ? "Let guests come first: one guest could not hide." :
                          left === 0 ? "All lessons are spent: one more would say more about a guest than promised." : ""));
  drawJar(at("jar"), percent, unsure);
  at("jar-note").textContent =
      unsure           ? spendingWords() :
      !begun           ? `Nothing is spent. There is enough for ${LESSONS} lessons. The first usually takes most: it ` +
              "also counts, with noise, what is ordered after what." :
      left === LESSONS ? `${percent}% is spent: a lesson was begun. Learning again finishes it.` :
                         `${percent}% is spent and never comes back. ${left} of ${LESSONS} lessons are left.`;
  showQuality();
  if (!begun) return;
  at("exact").textContent = `Epsilon ${shownEpsilon(spent.epsilonStated)} at delta ${DELTA} covers all ${
      LESSONS} lessons, for each guest. ${notes.quality.map(({label, ndcg}) => `${label}: NDCG@10 ${ndcg.toFixed(4)}`).join("; ")}.` +
      " These qualities are computed from the orders, not private: they stay here.";
}

const spendingWords = () => `At least ${percent}% is spent. How much the lesson takes is said when it ends.`;

// Reads from the ledger what is spent: of the part of the plan that was used, if it is not all.
async function readStatements(spent) {
  const of = JSON.stringify(spent);
  if (of !== statements.of) {
    const accounting =
        spent ? JSON.parse(await device.statement({delta: DELTA, format: "json"})).accounting : {epsilon: 0};
    at("statement").textContent = spent ? await device.statement({delta: DELTA}) : "";
    statements = {of, accounting};
  }
  const {epsilon, epsilon_of_used_part: used = epsilon} = statements.accounting;
  percent = !spent ? 0 : spent.runsLeft === 0 ? 100 : percentOf(used, spent.epsilonLimit);
}

function showQuality() {
  if (notes.quality.length > 0)
    drawChart(at("quality").tBodies[0], notes.quality.map(({label, hit}) => ({label, of100: 100 * hit})));
}

async function writeNotes() { await device.writeFile(NOTES, new TextEncoder().encode(JSON.stringify(notes))); }

async function readNotes() {
  if ((await device.listFiles()).includes(NOTES))
    notes = JSON.parse(new TextDecoder().decode(await device.readFile(NOTES)));
  if (notes.hidden !== null) at("guests").textContent = "The people of your log";
}

// The row of a lesson that was finished replaces that of the same lesson when it was stopped.
async function measure(label, file, lesson = 0) {
  const {ndcgAt10, hitAt10} = await device.evaluate(file);
  notes.quality =
      [...notes.quality.filter((row) => row.lesson !== lesson), {lesson, label, ndcg: ndcgAt10, hit: hitAt10}];
  await writeNotes();
}

// Measures the model that is open, unless it was measured: also that of a lesson that was stopped, or whose page was
// closed.
async function measureNewest() {
  const hash = model.info.contentHash;
  if (!learned || notes.measured === hash) return;
  const lesson = Math.max(1, LESSONS - (await budget()).runsLeft);
  notes.measured = hash;
  await measure(notes.finished === hash ? `after lesson ${lesson}` : `lesson ${lesson}, stopped`, MINE, lesson);
}

async function appendAll(events) {
  at("progress").max = events.length;
  for (let i = 0; i < events.length; i += BATCH_OF_EVENTS) {
    await device.appendEvents(events.slice(i, i + BATCH_OF_EVENTS));
    at("progress").value = Math.min(i + BATCH_OF_EVENTS, events.length);
    at("phase").textContent = `${thousands(at("progress").value)} of ${thousands(events.length)} orders.`;
  }
}

async function inviteGuests() {
  say("Guests come.");
  const {items, guests: all} = await guests;
  await working(async () => {
    await appendAll(all.flatMap(({user, orders}) => orders.map(([item, time]) => ({user, item: items[item], time}))));
    await measure("as shipped", BASE);
  });
  say("The guests have been here. Now the model can learn from them.");
}

// Shows that something is going on while `action` runs: at once, and every moment.
async function working(action) {
  at("progress").removeAttribute("value");
  at("phase").textContent = "";
  at("working").hidden = false;
  try {
    return await action();
  } finally {
    at("working").hidden = true;
  }
}

async function learn() {
  const stop = new AbortController(), begin = performance.now(), hash = model.info.contentHash;
  const first = percent === 0;
  const plan = {
    model: BASE, output: MINE, epsilon: epsilonChosen(), delta: DELTA, numRecordsPublic: notes.people, runs: LESSONS,
    unit: "user", evaluation: "none", replace: first
  };
  let phase = "Choosing the noise";
  const ticking = setInterval(() => {
    at("phase").textContent = `${phase} \u2013 ${((performance.now() - begin) / 1000).toFixed(1)} s`;
  }, TICK_MS);
  const spending = () => {
    drawJar(at("jar"), percent, unsure);
    at("jar-note").textContent = spendingWords();
  };
  at("stop").hidden = false;
  at("stop").textContent = "Stop";
  allow("stop", "");
  at("stop").onclick = () => {
    if (stop.signal.aborted) return;
    say("Stopping.");
    at("stop").textContent = "Stopping";
    allow("stop", "It is stopping.");
    stop.abort();
  };
  say("Learning.");
  unsure = true;
  spending();
  try {
    await working(async () => {
      await device.plan({...plan, signal: stop.signal});
      await device.runPlanned({
        model: BASE, output: MINE, signal: stop.signal,
        onProgress: ({step, numSteps, epsilon}) => {
          if (numSteps === 0) return;
          performance.mark("step");
          at("progress").max = numSteps;
          at("progress").value = step;
          phase = `Step ${step} of ${numSteps}`;
          // Later lessons are told the whole plan's epsilon, which is more than what is spent.
          if (first && epsilon > 0) percent = percentOf(epsilon, plan.epsilon);
          spending();
        },
      });
      phase = "Counting how well the list fits";
      at("stop").hidden = true;
      at("progress").removeAttribute("value");
      performance.measure("learn", {start: begin});
      await useModel();
      notes.finished = model.info.contentHash;
      await writeNotes();  // the page may be closed while it measures
      await measureNewest();
    });
    showList("After the lesson");
    unsure = false;
    await showState();
    say("It has learned. The list is the new model's.");
  } catch (error) {
    unsure = false;
    await showPart(hash).catch(() => {});  // the first error is said
    if (error.kind !== "Cancelled") throw error;
    await showState();
    say("Stopped. The jar shows what is spent.");
  } finally {
    clearInterval(ticking);
    at("stop").hidden = true;
  }
}

// Shows what a lesson made before it ended too early. `hash` is that of the model before it.
async function showPart(hash) {
  await useModel();
  if (model.info.contentHash !== hash) showList("After a part of the lesson");
  await measureNewest();
}

// Opens the newest model in the store.
async function useModel() {
  learned = (await device.listFiles()).includes(MINE);
  const name = learned ? MINE : BASE, fresh = runtime.openModel(await device.readFile(name), {name});
  model.close();
  model = fresh;
}

// Runs one task at a time, and shows errors.
async function run(task) {
  if (running) return;
  running = task;
  allow("guests", "Wait for what runs.");
  allow("learn", "Wait for what runs.");
  try {
    await task();
  } catch (error) {
    fail(error);
  } finally {
    running = null;
    if (device) await showState().catch(fail);
  }
}

async function forget() {
  if (!await ask("Erase what you ordered? The guests' orders stay.", "Erase")) return;
  await device.eraseUser(YOU);
  history = [];
  before = null;
  showList();
  say("Your orders are erased. What the model learned from them stays within its promise.");
}

async function openDevice() {
  device = await Device.open(FOLDER, {
    worker: () => new Worker(new URL("../counted_worker.js", import.meta.url), {type: "module", name: channelName}),
  });
}

async function deleteAll() {
  await device?.close();
  device = null;
  await Device.delete(FOLDER);
}

async function reset() {
  if (!await ask("Delete everything that this page has stored: orders, models, and the record of what was spent?", "Delete"))
    return;
  await deleteAll();
  location.reload();
}

// Replaces the cafe by the visitor's files. All cafe's items but one are retired: the library wants one that has
// learned, and this page never shows it.
async function useOwn() {
  at("own-error").hidden = true;
  let items, events;
  try {
    items = await readCatalogue(at("catalogue").files[0]);
    events = await readLog(at("log").files[0], items);
  } catch (error) {
    at("own-error").textContent = error.message;
    at("own-error").hidden = false;
    return;
  }
  if (!await ask(`Replace the cafe by your ${thousands(items.length)} items and ${thousands(events.length)
      } events? Everything stored here is deleted first.`, "Replace"))
    return;
  say("Reading your files.");
  await deleteAll();
  await openDevice();
  await device.writeFile("cafe.wisp", await shippedBytes());
  const cafe = (await device.describeModel("cafe.wisp")).items.map(({key}) => key);
  await device.addItems({
    model: "cafe.wisp", output: "all.wisp", items: items.map(({key, name}) => ({key: OWN + key, name}))
  });
  await device.retireItems({model: "all.wisp", output: BASE, keys: cafe.slice(1)});
  for (const file of ["cafe.wisp", "all.wisp"]) await device.removeFile(file);
  notes = {quality: [], people: Number(at("people").value), hidden: cafe[0], measured: null, finished: null};
  await working(async () => {
    await appendAll(events.map(({user, item, time}) => ({user: `guest ${user}`, item: OWN + item, time})));
    await measure("before learning", BASE);
  });
  await restore();
  say("Your items and events are here. Let it learn.");
}

let shipped = null;
const shippedBytes = async () => (shipped ??= bytesOf("cafe.wisp"), (await shipped).slice(0));

// Shows what the store has.
async function restore() {
  await readNotes();
  await useModel();
  history = await device.history({model: BASE, user: YOU});
  before = null;
  showList();
  showMenu();
  await measureNewest();
  await showState();
}

// Counts requests of the page and of its worker, from now on.
const channelName = `requests ${crypto.randomUUID()}`;
function countRequests() {
  const seen = [];
  const count = (names) => {
    seen.push(...names);
    const elsewhere = seen.filter((name) => new URL(name).origin !== location.origin).length;
    at("requests").textContent = elsewhere;
    at("requests-note").textContent = `request${elsewhere === 1 ? "" : "s"} to another place than this site.`;
    const own = seen.filter((name) => new URL(name).origin === location.origin);
    at("requests-own").textContent = `${own.length} for the page's own files, since it was ready${
        own.length === 0 ? "." : `: ${[...new Set(own.map((name) => name.split("/").pop()))].join(", ")}.`}`;
  };
  new PerformanceObserver((entries) => count(entries.getEntries().map(({name}) => name))).observe({type: "resource"});
  new BroadcastChannel(channelName).onmessage = ({data}) => count(data);
}

async function begin() {
  const bytes = shippedBytes();
  runtime = await loadRuntime();
  model = runtime.openModel(await bytes, {name: "cafe.wisp"});
  showProtection(false);
  drawJar(at("jar"), 0, false);
  showList();
  performance.mark("first-list");
  showMenu();
  say("Ready. Orders are not kept yet: opening this page's storage.");
  guests = bytesOf("guests.json").then((text) => JSON.parse(new TextDecoder().decode(text)));
  guests.catch(() => {});  // said once guests are to come
  await openDevice();
  if (!(await device.listFiles()).includes(BASE)) await device.writeFile(BASE, await shippedBytes());
  const early = history;
  await restore();
  if (notes.hidden === null)
    for (const item of early) await order(item);
  await guests.catch(() => {});
  countRequests();
  say(history.length ? "Welcome back: your orders are still here." : "Ready.");
  performance.mark("ready");
}

at("search").addEventListener("input", showMenu);
at("protection").addEventListener("input", () => showProtection(false));
at("own").addEventListener("submit", (event) => {
  event.preventDefault();
  run(useOwn);
});
onClick("guests", () => run(inviteGuests));
onClick("learn", () => run(learn));
onClick("forget", () => run(forget));
onClick("reset", () => reset().catch(fail));
begin().catch(fail);
