// Lists of items. A list of buttons is one tab stop; arrow keys move within it, and the focus survives a new content.

const STEPS = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity};

export class Buttons {
  // Calls choose(item) for the button that was chosen in the list `root`.
  constructor(root, choose) {
    this.root = root;
    this.current = 0;
    root.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.enter(this.current + step);
      this.buttons[this.current]?.focus();
    });
    root.addEventListener("click", ({target}) => {
      const button = target.closest("button");
      if (!button) return;
      this.enter(this.buttons.indexOf(button));
      choose(Number(button.dataset.item));
    });
    root.addEventListener("focusin", ({target}) => this.enter(this.buttons.indexOf(target)));
  }

  get buttons() { return [...this.root.querySelectorAll("button")]; }

  // Makes the button at this place, or the nearest, the tab stop.
  enter(place) {
    const all = this.buttons;
    this.current = Math.max(0, Math.min(place, all.length - 1));
    all.forEach((button, i) => { button.tabIndex = i === this.current ? 0 : -1; });
  }

  // Shows [{ item, name, mark }]. The focus stays at its item, or at its place if the item is gone.
  show(items) {
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.item : null;
    this.root.replaceChildren(...items.map(({item, name, mark}) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.item = item;
      button.append(name);
      return row(button, ...(mark ? [mark] : []));
    }));
    const same = items.findIndex(({item}) => String(item) === focused);
    this.enter(same >= 0 ? same : this.current);
    if (focused !== null) this.buttons[this.current]?.focus({preventScroll: true});
  }
}

export function row(...content) {
  const made = document.createElement("li");
  made.append(...content);
  return made;
}

// Where the item at `place` stood before: an element that says so, or null if it has not moved.
export function markOf(item, place, before) {
  const was = before.findIndex((entry) => entry.item === item);
  if (was === place) return null;
  const mark = document.createElement("span");
  mark.className = was < 0 ? "mark new" : was > place ? "mark up" : "mark down";
  mark.append(was < 0 ? "new" : was > place ? `\u25b2\u00a0${was - place}` : `\u25bc\u00a0${place - was}`);
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", was < 0 ? "new here" : `${was > place ? "up" : "down"} ${Math.abs(was - place)}`);
  return mark;
}
