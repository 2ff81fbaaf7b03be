#!/usr/bin/env python3
"""Measures the gain over a device's deployment: plan it, run its training sessions, and compare the served model at
the end with the base.

    tools/lab/bench/deployment/measure.py cafe --users 500 2000 20000 --seeds 1 2 3
    tools/lab/bench/deployment/measure.py games --data games.txt --users 2000 20000 --json g.jsonl \\
        -- --learning-rate 0.003
    tools/lab/bench/deployment/measure.py games --data games.txt --whole --items-kept 3000 --public 4000 --ordinary
    tools/lab/bench/deployment/measure.py ml-1m --data ml-1m.txt --items ml-1m-items.tsv --genre Horror --users 500 2000

What follows -- goes to `wisp plan`. The splits have the shift that a device has:
  cafe   the shipped model, and guests of another place; 20,000 fresh guests tell how good a model is
  games  the base learned from the first half of the histories of 8,000 users, so newer items are new to it (`wisp
         catalogue add` gave them rows); device and test have other users' whole histories
  ml-1m  the base has 2,000 users; device and test have those of the others who like one genre most
         (without --genre: any)
Of games, --whole lets the base learn whole histories, so that no item is new to it, and --items-kept keeps the items
that most people chose. --ordinary fine-tunes the base without privacy too, on the same log: what there is to be
learned.
With --grow people come over the runs: run t of T has the first t / T of them.
A log is divided by a day (`wisp plan --trains-until`): what people did before it trains, what they did later evaluates.
Of a cafe's events the last fifth is later; of histories, which have no times, the last fifth of each.
Data files: a user and an item a line, oldest first. Bases are made once and kept in --work.
--json appends a line for each deployment; `tools/lab/reproduce/gains.py take` makes the measured gains of them, which
the documents and `wisp plan` quote. It also measures what the releases before the first step bring alone, with one run
that takes no step worth its name.
Exit codes: 0 measured, 1 wisp failed.
"""
import argparse
import collections
import csv
import datetime
import filecmp
import json
import os
import random
import re
import shlex
import sqlite3
import subprocess
import sys


class Wisp:
    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def __call__(self, *words, json_out=True, threads=True):
        command = [self.program, *map(str, words)]
        command += ["--threads", str(self.threads)] if threads else []
        command += ["--json"] if json_out else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-600:]}")
        return json.loads(done.stdout) if json_out and done.stdout.strip() else None

    def ndcg(self, model, data):
        return self("evaluate", "--model", model, "--data", data)["ndcg@10"]


def read_users(path):
    users = {}
    with open(path) as lines:
        for line in lines:
            user, item = line.split()
            users.setdefault(user, []).append(item)
    return users


LATER = 0.8  # share of events before the day that divides a log
START, LENGTH = 1_700_000_000, 365 * 24 * 3600  # for logs made of histories without times; seconds since 1970


def write_log(path, users):
    """Events get times by their places in each history: a year for all of it."""
    with open(path, "w") as out:
        out.write("user,item,time\n")
        for user, items in users:
            out.writelines(f"{user},{item},{START + i * LENGTH // len(items)}\n" for i, item in enumerate(items))


def write_users(path, users):
    with open(path, "w") as out:
        for user, items in users:
            out.writelines(f"{user} {item}\n" for item in items)


def recipe(name, epochs):
    """Says how the bases are trained, the public part of an app's work."""
    games = name == "games"
    return {
        "name": f"base of {name}",
        "architecture": {"max_length": 50, "width": 32, "num_heads": 4 if games else 1, "num_blocks": 2,
                         "inner_width": 32,
                         "embedding_scale": 6, "activation": "gelu", "norm": "pre", "output_table": "tied",
                         "output_bias": "fixed"},
        "initialisation": {"table_deviation": 0.02},
        "training": {"method": "ordinary", "sampling": "shuffled", "loss": "position_mean", "epochs": epochs,
                     "expected_batch": 64, "seed": 1,
                     "optimizer": {"kind": "adam", "learning_rate": 0.002, "decay": "linear"},
                     "dropout": {"embedding": 0.2, "attention": 0.1, "residual": 0.2}},
        "data": {"hold_out": "nothing"}}


class Split:
    """Files of one experiment in the folder of work: base.wisp, test, and device(n, seed)."""

    def __init__(self, wisp, options):
        self.wisp, self.o, self.folder = wisp, options, os.path.join(options.work, options.what + (options.genre or ""))
        os.makedirs(self.folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)


class Cafe(Split):
    def base(self):
        return self.o.model

    def test(self):
        if not os.path.exists(self.path("fresh.db")):
            self.wisp("synth", "--out", self.path("fresh.db"), "--population", "device", "--users", 20000, "--seed", 77,
                      json_out=False, threads=False)
        return self.path("fresh.db")

    def device(self, users, seed):
        path = self.path(f"device-{users}-{seed}.db")
        if not os.path.exists(path):
            self.wisp("synth", "--out", path, "--population", "device", "--users", users, "--seed", 100 + seed,
                      json_out=False, threads=False)
        return path

    def trains_until(self, log):
        with sqlite3.connect(log) as events:
            count = events.execute("SELECT count(*) FROM events").fetchone()[0]
            at = events.execute("SELECT time FROM events ORDER BY time LIMIT 1 OFFSET ?", (int(LATER * count),))
            return at.fetchone()[0]


class Histories(Split):
    """The users of a file, divided once: public, test, and the rest for devices."""

    def __init__(self, wisp, options):
        super().__init__(wisp, options)
        self.all = read_users(options.data)
        if options.items_kept:
            chosen = collections.Counter(item for items in self.all.values() for item in set(items))
            # Ties are broken by key: another order would divide the users differently, beside a base that is kept.
            kept = set(sorted(chosen, key=lambda item: (-chosen[item], item))[:options.items_kept])
            self.all = {user: [item for item in items if item in kept] for user, items in self.all.items()}
        if options.public:
            self.num_public = options.public
        names = [user for user, items in self.all.items() if len(items) >= 4]
        random.Random(1).shuffle(names)
        public, rest = names[:self.num_public], names[self.num_public:]
        rest = self.chosen(rest)
        num_test = self.num_test if max(options.users) > 10000 else max(self.num_test, len(rest) - 12000)
        self.public, self.test_users, self.rest = public, rest[:num_test], rest[num_test:]

    def chosen(self, names):
        return names

    def base(self):
        path = self.path("base.wisp")
        if os.path.exists(path):
            return path
        seen = [(u, self.seen_by_base(self.all[u])) for u in self.public]
        write_users(self.path("public.txt"), seen)
        with open(self.path("base.json"), "w") as out:
            json.dump(recipe(self.o.what, self.epochs), out)
        self.wisp("train", "--recipe", self.path("base.json"), "--data", self.path("public.txt"), "--out",
                  self.path("trained.wisp"))
        known = {item for _, items in seen for item in items}
        new = sorted({item for items in self.all.values() for item in items} - known)
        if not new:
            os.rename(self.path("trained.wisp"), path)
            return path
        with open(self.path("new.tsv"), "w") as out:
            out.writelines(f"{item}\n" for item in new)
        self.wisp("catalogue", "add", "--model", self.path("trained.wisp"), "--items", self.path("new.tsv"),
                  "--out", path, threads=False)
        return path

    def test(self):
        # The number is part of the name, because runs with other numbers of users may share the folder.
        path = self.path(f"test-{len(self.test_users)}.txt")
        write_users(path, [(u, self.all[u]) for u in self.test_users])
        return path

    def device(self, users, seed):
        if users > len(self.rest):
            sys.exit(f"{self.o.data} has {len(self.rest)} users for devices, {users} are asked for")
        names = self.rest[:]
        random.Random(seed).shuffle(names)
        path = self.path(f"device-{users}-{seed}.csv")
        write_log(path, [(u, self.all[u]) for u in names[:users]])
        return path

    def trains_until(self, _):
        return START + int(LATER * LENGTH) - 1


class Games(Histories):
    num_public, num_test, epochs = 8000, 2600, 30

    def seen_by_base(self, items):
        return items if self.o.whole else items[:max(2, len(items) // 2)]


class Movies(Histories):
    num_public, num_test, epochs = 2000, 800, 20

    def seen_by_base(self, items):
        return items

    def chosen(self, names):
        if not self.o.genre:
            return names
        with open(self.o.items, encoding="utf-8") as lines:
            rows = [row.rstrip("\n").split("\t") for row in lines]
        of_genre = {row[0] for row in rows if self.o.genre in row[2].split("|")}
        share = {u: sum(i in of_genre for i in self.all[u]) / len(self.all[u]) for u in names}
        fans = sorted(names, key=share.get, reverse=True)[:self.num_test + 2000]
        random.Random(2).shuffle(fans)
        return fans


def first_users(log, path, share):
    """Returns a log of the users that come first in the file."""
    with open(log) as lines:
        rows = list(csv.reader(lines))
    users = list(dict.fromkeys(row[0] for row in rows[1:]))
    first = set(users[:round(share * len(users))])
    with open(path, "w") as out:
        csv.writer(out).writerows([rows[0]] + [row for row in rows[1:] if row[0] in first])
    return path


def device():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        found = re.search(r"model name\s*: (.*)", lines.read())
    return " ".join(found[1].split()) if found else "unnamed processor"


def releases_alone(wisp, split, plan, words, deployment, test):
    """NDCG@10 of a candidate that has the plan's releases and no training; None if the plan has none."""
    if plan["bias_weight_releases"] + plan["succession_releases"] == 0:
        return None
    ledger, out = split.path(f"{os.getpid()}.alone.ledger"), split.path(f"{os.getpid()}.alone.wisp")
    deployment = [ledger if before == "--ledger" else word for before, word in zip(["", *deployment], deployment)]
    wisp("plan", *deployment, *words, "--learning-rate", 1e-9)
    wisp("personalise", *deployment, "--out", out)
    return wisp.ndcg(out + ".candidate" if os.path.exists(out + ".candidate") else out, test)


def is_same(one, other):
    return os.path.exists(other) and filecmp.cmp(one, other, shallow=False)


def live(wisp, split, options, users, seed):
    base, test, log = split.base(), split.test(), split.device(users, seed)
    ledger, out = split.path(f"{os.getpid()}.ledger"), split.path(f"{os.getpid()}.wisp")
    deployment = ["--data", log, "--model", base, "--ledger", ledger, "--dataset", f"device {seed}"]
    words = ["--epsilon", options.epsilon, "--delta", 1e-5, "--num-records-public", users, "--for",
             f"{options.runs} days", "--every", "1 day", "--unit", "user", "--trains-until", split.trains_until(log),
             *options.plan]
    plan = wisp("plan", *deployment, *words)
    alone = releases_alone(wisp, split, plan, words, deployment, test)
    better, seconds, everyone = [], 0, log
    for number in range(1, options.runs + 1):
        if options.grow:
            deployment[1] = first_users(everyone, split.path(f"{os.getpid()}.csv"), number / options.runs)
        planned_run = wisp("personalise", *deployment, "--early", "--out", out)
        better.append("the base, weighed anew" if is_same(out, out + ".weighed") else planned_run["serves"])
        seconds += planned_run.get("seconds", 0)
        if options.nightly:
            print(f"  run {len(better)}: served {wisp.ndcg(out, test):.4f}, {better[-1]}", flush=True)
    before, served, newest = wisp.ndcg(base, test), wisp.ndcg(out, test), None
    if os.path.exists(out + ".candidate"):
        newest = wisp.ndcg(out + ".candidate", test)
    ordinary = None
    if options.ordinary:
        tuned = recipe(options.what, 5)
        tuned["training"]["optimizer"]["learning_rate"] = 0.0005
        with open(split.path("ordinary.json"), "w") as made:
            json.dump(tuned, made)
        wisp("train", "--recipe", split.path("ordinary.json"), "--model", base, "--data", everyone, "--other-data",
             "--out", out)
        ordinary = wisp.ndcg(out, test)
    for name in os.listdir(split.folder):
        if name.startswith(f"{os.getpid()}."):
            os.remove(split.path(name))
    items = wisp("inspect", base, threads=False)["architecture"]["items"]
    of_plan = {key: plan[key] for key in ("learning_rate", "noise_to_signal", "noise_of_an_item", "succession_signal",
                                          "bias_weight_releases", "succession_releases", "outlook")}
    return {"what": options.what, "genre": options.genre, "whole": options.whole, "items_kept": options.items_kept,
            "grow": options.grow, "users": users, "seed": seed, "epsilon": options.epsilon, "runs": options.runs,
            "plan": options.plan, "items": items, "steps": plan["steps_per_run"] * plan["runs"],
            "batch": plan["expected_batch"], "noise": plan["training_noise"], **of_plan, "ordinary": ordinary,
            "base": before, "served": served, "candidate": newest, "gain": served / before - 1,
            "gain_of_candidate": None if newest is None else newest / before - 1,
            "gain_of_releases": None if alone is None else alone / before - 1, "serves": better[-1],
            "runs_of_base": better.count("the base"), "seconds": seconds, "device": device(),
            "date": datetime.date.today().isoformat(), "command": command()}


def command():
    """How this program was called, without what does not change a figure, and without folders of this machine."""
    words = sys.argv[1:]
    kept = [os.path.basename(word) for before, word in zip(["", *words], words)
            if not {before, word} & {"--json", "--work", "--wisp", "--model", "--threads"}]
    return shlex.join(["measure.py", *kept])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cafe", "games", "ml-1m"))
    parser.add_argument("--wisp", default="build/release/wisp", help="the program")
    parser.add_argument("--model", default="models/cafe.wisp", help="for cafe: the shipped model")
    parser.add_argument("--data", help="for games and ml-1m: the file of histories")
    parser.add_argument("--items", help="for ml-1m: file with item, title and genres on each line, separated by tabs")
    parser.add_argument("--genre", help="for ml-1m: takes the users who like this genre most")
    parser.add_argument("--users", type=int, nargs="+", default=[2000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--epsilon", type=float, default=4)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", default="build/deployment", help="folder for splits and bases")
    parser.add_argument("--whole", action="store_true", help="for games: the base learns whole histories")
    parser.add_argument("--items-kept", type=int, help="for histories: number of items, those that most people chose")
    parser.add_argument("--public", type=int, help="for histories: number of users for the base")
    parser.add_argument("--ordinary", action="store_true", help="also fine-tune without privacy")
    parser.add_argument("--grow", action="store_true", help="people join over the runs")
    parser.add_argument("--nightly", action="store_true", help="show the quality of the served model after each run")
    parser.add_argument("--json", help="append the results to this file, one line each")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:cut])
    options.plan = words[cut + 1:]
    if options.what != "cafe" and not options.data:
        parser.error(f"{options.what} needs --data")
    wisp = Wisp(options.wisp, options.threads)
    split = {"cafe": Cafe, "games": Games, "ml-1m": Movies}[options.what](wisp, options)
    for users in options.users:
        for seed in options.seeds:
            line = live(wisp, split, options, users, seed)
            newest = "none" if line["candidate"] is None else f"{line['gain_of_candidate']:+.1%}"
            print(f"{options.what} {users} users, seed {seed}: base {line['base']:.4f}, served {line['served']:.4f} "
                  f"({line['gain']:+.1%}, {line['serves']}), newest {newest}; "
                  f"ordinary {line['ordinary']}; {line['outlook']}: noise to signal {line['noise_to_signal']:.2f}, "
                  f"of one item {line['noise_of_an_item']:.2f}",
                  flush=True)
            if options.json:
                with open(options.json, "a") as out:
                    out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
