// A catalogue and a log as CSV. Errors are sentences that name the file and the line.

const MOST_ITEMS = 5000, MOST_EVENTS = 500000, MOST_BYTES = 50e6;
// A time below this counts seconds, another one milliseconds.
const FIRST_MILLISECONDS = 1e11;

// Yields { line, fields } of each record, by RFC 4180. Lines count from 1.
function* records(name, text) {
  let line = 1, at = 0;
  while (at < text.length) {
    const fields = [], begin = line;
    for (let ended = false; !ended;) {
      let field = "";
      if (text[at] === '"') {
        for (++at;; ++at) {
          if (at >= text.length) throw new Error(`${name}, line ${begin}: a quote is not closed`);
          if (text[at] === "\n") ++line;
          if (text[at] !== '"') field += text[at];
          else if (text[at + 1] === '"') field += text[++at];
          else break;
        }
        ++at;
        if (at < text.length && !",\r\n".includes(text[at]))
          throw new Error(`${name}, line ${line}: a comma must follow a closing quote, not '${text[at]}'`);
      } else {
        const end = text.slice(at).search(/[,\r\n]/);
        field = text.slice(at, end < 0 ? text.length : at + end);
        at = end < 0 ? text.length : at + end;
      }
      fields.push(field.trim());
      ended = text[at] !== ",";
      ++at;
      if (text[at - 1] === "\r" && text[at] === "\n") ++at;
    }
    if (fields.length > 1 || fields[0] !== "") yield {line: begin, fields};
    ++line;
  }
}

// The records of a file as objects, by the columns of its header.
async function* rows(file, columns) {
  if (file.size > MOST_BYTES) throw new Error(`${file.name}: has ${file.size} bytes; at most ${MOST_BYTES} are read`);
  const text = (await file.text()).replace(/^\ufeff/, "");
  let header = null;
  for (const {line, fields} of records(file.name, text)) {
    if (header === null) {
      header = fields.map((field) => field.toLowerCase());
      const absent = columns.find((column) => !header.includes(column));
      if (absent) throw new Error(
          `${file.name}, line ${line}: the header has no column '${absent}'; needed are ${columns.join(", ")}`);
      continue;
    }
    if (fields.length !== header.length)
      throw new Error(`${file.name}, line ${line}: has ${fields.length} fields, the header has ${header.length}`);
    yield {line, ...Object.fromEntries(header.map((column, i) => [column, fields[i]]))};
  }
  if (header === null) throw new Error(`${file.name}: is empty`);
}

// Returns [{ key, name }].
export async function readCatalogue(file) {
  const lines = new Map(), items = [];
  for await (const {line, item, name} of rows(file, ["item", "name"])) {
    if (item === "") throw new Error(`${file.name}, line ${line}: the item is empty`);
    if (lines.has(item))
      throw new Error(`${file.name}, line ${line}: the item '${item}' is also on line ${lines.get(item)}`);
    if (items.length === MOST_ITEMS)
      throw new Error(`${file.name}, line ${line}: this page takes at most ${MOST_ITEMS} items`);
    lines.set(item, line);
    items.push({key: item, name: name || item});
  }
  if (items.length < 2) throw new Error(`${file.name}: has ${items.length} items; at least 2 are needed`);
  return items;
}

function timeOf(file, line, time) {
  const number = /^\d+$/.test(time) ? Number(time) : Date.parse(time);
  if (!Number.isSafeInteger(number) || time === "")
    throw new Error(
        `${file.name}, line ${line}: the time '${time}' is neither a date nor seconds or milliseconds since 1970`);
  return /^\d+$/.test(time) && number < FIRST_MILLISECONDS ? 1000 * number : number;
}

// Returns [{ user, item, time }] with times in milliseconds, oldest first. `items` is the catalogue.
export async function readLog(file, items) {
  const known = new Set(items.map(({key}) => key)), events = [];
  for await (const {line, user, item, time} of rows(file, ["user", "item", "time"])) {
    if (user === "") throw new Error(`${file.name}, line ${line}: the user is empty`);
    if (!known.has(item)) throw new Error(`${file.name}, line ${line}: the catalogue has no item '${item}'`);
    if (events.length === MOST_EVENTS)
      throw new Error(`${file.name}, line ${line}: this page takes at most ${MOST_EVENTS} events`);
    events.push({user, item, time: timeOf(file, line, time)});
  }
  if (events.length === 0) throw new Error(`${file.name}: has no events below its header`);
  return events.sort((a, b) => a.time - b.time);
}
