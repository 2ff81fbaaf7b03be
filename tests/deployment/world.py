"""A cafe over a year: who comes on which day, what they choose by then, and what the menu has.

Guests are made by `wisp synth`; what changes in a year is laid over them: a season, in which sodas give way to soups,
and dishes that are taken off the menu and come back under another name, first seen some days before an update knows
them.
"""
import random
import sqlite3
import subprocess

DAY = 86400
START = 1_700_006_400  # the first session, in seconds; a midnight
DAYS_KEPT = 150
UPDATES = (91, 182, 273)  # runs on which a new base arrives
SEEN_BEFORE = 10  # days on which guests order items that the base does not know yet
RELAUNCHED = 12  # dishes at each update


def guests_of(wisp, folder, count, seed):
    """Returns the items of each guest, oldest first."""
    path = f"{folder}/guests-{seed}.tsv"
    subprocess.run([wisp, "synth", "--out", path, "--population", "device", "--users", str(count), "--seed", str(seed)],
                   check=True, capture_output=True)
    guests = {}
    with open(path) as lines:
        next(lines)
        for row in lines:
            user, item, _ = row.split("\t")
            guests.setdefault(user, []).append(item)
    return list(guests.values())


def share_of_soup(day):
    """Returns the share of soda orders that happen: none in summer, most of them in winter."""
    rising, falling = (day - 60) / 90, (330 - day) / 90
    return max(0.0, min(0.8, rising, falling))


class Menu:
    def __init__(self, items):
        self.items = sorted(items)
        sodas, soups = ([i for i in self.items if i.startswith(kind + "-")] for kind in ("soda", "soup"))
        self.soup_for = dict(zip(sodas, soups))
        step = len(self.items) // RELAUNCHED
        self.gone_at = [self.items[7 * update::step][:RELAUNCHED] for update in range(1, len(UPDATES) + 1)]

    @staticmethod
    def new_name(item):
        return item + "-new"

    def chosen(self, items, day, randomness):
        """Returns a guest's orders on that day in place of these items."""
        result = []
        for item in items:
            if item in self.soup_for and randomness.random() < share_of_soup(day):
                item = self.soup_for[item]
            for update, gone in zip(UPDATES, self.gone_at):
                if day >= update - SEEN_BEFORE and item in gone:
                    item = self.new_name(item)
            result.append(item)
        return result


class Cafe:
    """Returns the guests of each day, and others that no run ever sees."""

    def __init__(self, wisp, folder, seed, runs, guests_per_day, fresh):
        self.randomness = random.Random(seed)
        self.folder, self.guests_per_day = folder, guests_per_day
        self.waiting = guests_of(wisp, folder, guests_per_day * (runs + DAYS_KEPT), 1000 + seed)
        self.fresh = guests_of(wisp, folder, fresh, 2000 + seed)
        self.menu = Menu({item for items in self.waiting + self.fresh for item in items})
        self.next_guest = 0

    def open_log(self, path):
        self.log = path
        with sqlite3.connect(path) as log:
            log.execute("create table events(user text, item text, time integer)")
        for day in range(-DAYS_KEPT, 0):
            self.day(day)

    def day(self, day):
        """Appends the orders of the day's guests; returns their keys."""
        keys = []
        with sqlite3.connect(self.log) as log:
            for _ in range(self.guests_per_day):
                items = self.menu.chosen(self.waiting[self.next_guest], day, self.randomness)
                keys.append(f"g{self.next_guest:05}")
                times = range(START + day * DAY + 60 * self.next_guest % DAY, 10**12, 30)
                log.executemany("insert into events values (?, ?, ?)", zip([keys[-1]] * len(items), items, times))
                self.next_guest += 1
        return keys

    def fresh_guests(self, day):
        """Writes a file of the orders that the others would make on that day."""
        path, randomness = f"{self.folder}/fresh.txt", random.Random(day)
        with open(path, "w") as out:
            for number, items in enumerate(self.fresh):
                out.writelines(f"{number} {item}\n" for item in self.menu.chosen(items, day, randomness))
        return path
