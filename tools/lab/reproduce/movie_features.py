#!/usr/bin/env python3
"""Makes public features of movies, for `wisp train --item-features`, from lines of key, title (year) and genres.

    movie_features.py items.tsv > features.tsv

Columns are separated by tabs, genres by |, as in MovieLens; a first line without a year is a header. A row has the
genres and the year, each of length 1 / sqrt(2). The year is near some of twelve years, so that films of one time share
features.
"""
import math
import re
import sys

# The centres of years and their widths: closer where there are more films.
YEARS = [(1930, 12), (1942, 10), (1952, 10), (1962, 9), (1970, 7), (1977, 6), (1983, 5), (1988, 4), (1992, 3),
         (1995, 2), (1997.5, 2), (2000, 2)]


def scale(values):
    length = math.sqrt(2 * sum(v * v for v in values))
    return [v / length if length > 0 else 0.0 for v in values]


def read(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, title, genres = line.rstrip("\n").split("\t")
            year = re.search(r"\((\d{4})\)\s*$", title)
            if year:
                yield key, float(year.group(1)), genres.split("|")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    movies = list(read(sys.argv[1]))
    names = sorted({genre for _, _, genres in movies for genre in genres})
    for key, year, genres in movies:
        features = scale([float(name in genres) for name in names])
        features += scale([math.exp(-0.5 * ((year - centre) / width) ** 2) for centre, width in YEARS])
        print(key + "\t" + " ".join(f"{round(x, 4):g}" for x in features))


if __name__ == "__main__":
    main()
