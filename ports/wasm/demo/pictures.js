// The pictures: the jar of what may be spent, and the chart of quality.

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A jar that is full while nothing is spent. While a lesson runs, at least `percent` is spent, and the rest is unsure.
export function drawJar(jar, percent, running) {
  const top = 18, bottom = 78, level = top + (bottom - top) * percent / 100;
  const part = (from, to, name) => shape("rect", {x: 8, width: 48, y: from, height: to - from, class: name});
  const glass = shape("path", {d: "M14 4h36v6c6 2 10 4 10 10v56q0 6-6 6H10q-6 0-6-6V20c0-6 4-8 10-10z", class: "glass"});
  jar.replaceChildren(part(top, level, "taken"), part(level, bottom, running ? "unsure" : "left"), glass);
  jar.setAttribute("aria-label", `${running ? "At least " : ""}${percent}% is spent`);
}

// One bar for each [{ label, of100 }]. The longest has the full width.
export function drawChart(body, rows) {
  const most = Math.max(1, ...rows.map(({of100}) => of100));
  body.replaceChildren(...rows.map(({label, of100}) => {
    const row = document.createElement("tr"), name = document.createElement("th"), cell = document.createElement("td");
    name.scope = "row";
    name.append(label);
    const [track, space, bar, number] = ["div", "span", "span", "span"].map((tag) => document.createElement(tag));
    track.className = "track";
    bar.className = "bar";
    bar.style.width = `${100 * of100 / most}%`;
    space.append(bar);
    number.append(String(Math.round(of100)));
    track.append(space, number);
    cell.append(track);
    row.append(name, cell);
    return row;
  }));
}
