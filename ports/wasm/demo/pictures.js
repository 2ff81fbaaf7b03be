// The pictures: the jar of lessons that are left, and the chart of quality.

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A jar with one slice a lesson. Learning takes the topmost slice out.
export function drawJar(jar, left, planned) {
  const top = 16, bottom = 80, gap = 2, height = (bottom - top - gap) / planned - gap;
  const slices = Array.from({length: planned}, (_, i) => shape("rect", {
    x: 8, width: 48, rx: 2, height, y: bottom - (i + 1) * (height + gap), class: i < left ? "left" : "gone"
  }));
  const glass = shape("path", {d: "M14 4h36v6c6 2 10 4 10 10v56q0 6-6 6H10q-6 0-6-6V20c0-6 4-8 10-10z", class: "glass"});
  jar.replaceChildren(...slices, glass);
  jar.setAttribute("aria-label", `${left} of ${planned} lessons left`);
}

// One bar for each [{ label, of100 }].
export function drawChart(body, rows) {
  body.replaceChildren(...rows.map(({label, of100}) => {
    const row = document.createElement("tr"), name = document.createElement("th"), cell = document.createElement("td");
    name.scope = "row";
    name.append(label);
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.width = `${Math.max(1, of100)}%`;
    const number = document.createElement("span");
    number.append(String(Math.round(of100)));
    cell.append(bar, number);
    row.append(name, cell);
    return row;
  }));
}
