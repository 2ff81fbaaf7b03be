#!/usr/bin/env bash
# The site of the documents: built without a warning, every link leads somewhere, and a browser reads and searches it.
#   tests/site.sh     exits 77 if mkdocs, Doxygen or a browser is missing; WISP_SCREENSHOTS=DIR keeps pictures
set -uo pipefail
export PATH=/usr/bin:/bin:$PATH
root=$(cd "$(dirname "$0")/.." && pwd)
for program in doxygen mkdocs chromium chromedriver; do
  command -v $program >/dev/null || { echo "skipped: $program is missing; tools/dev site installs it"; exit 77; }
done
python3 -c 'import selenium, pymdownx' 2>/dev/null ||
  { echo "skipped: python3-selenium or python3-pymdownx is missing; tools/dev site installs them"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

"$root/tools/site/build" "$work/site" >"$work/said" 2>&1 || { fail "the site is not built: $(tail -n 20 "$work/said")"; exit 1; }
cat "$work/said"
mkdir -p "$work/foreign/docs"
"$root/tools/site/build" "$work/foreign" >"$work/said" 2>&1 && fail "a folder with docs of its own is replaced"
grep -q "none that says that tools/site/build made it" "$work/said" || fail "a foreign folder: $(cat "$work/said")"
[ -d "$work/foreign/docs" ] || fail "tools/site/build removed a folder that it did not make"
python3 "$root/tests/site/page.py" "$work/site" || fail "the browser found fault with the site"

# Faults are noticed: a link, a place within a page, and a load from elsewhere.
wrong() {  # WHAT HTML
  rm -rf "$work/broken"
  cp -r "$work/site" "$work/broken"
  sed -i "s|</article>|$2</article>|" "$work/broken/docs/guide/index.html"
  python3 "$root/tools/site/links.py" "$work/broken" >"$work/said" 2>&1 && fail "$1 is not seen"
  grep -q '^docs/guide/index.html ' "$work/said" || fail "$1: the page is not named: $(cat "$work/said")"
}
wrong "a link to nowhere" '<a href="../nowhere/">x</a>'
wrong "a place that is not there" '<a href="../c/#nowhere">x</a>'
wrong "a script from elsewhere" '<script src="https://elsewhere.example/x.js"></script>'
wrong "a font from elsewhere" '<style>@import "//elsewhere.example/x.css";</style>'

# So are a document that links to a missing file, and one that docs/README.md does not name.
refused() {  # WORD
  python3 "${root_of_pages:-$root}/tools/site/pages.py" "$work/tree" "$work/pages" "$work/mkdocs.yml" >"$work/said" 2>&1 && fail "$1: not refused"
  grep -q -- "$1" "$work/said" || fail "$1: not said: $(cat "$work/said")"
}
git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf "$work/tree.tar" && mkdir "$work/tree" && tar -C "$work/tree" -xf "$work/tree.tar"
git -C "$work/tree" init -q
echo '[x](no/file.cc)' >>"$work/tree/docs/memory.md"
git -C "$work/tree" add -A
refused "docs/memory.md links to no/file.cc"
sed -i '$d' "$work/tree/docs/memory.md"
echo '# Forgotten' >"$work/tree/docs/forgotten.md"
git -C "$work/tree" add -A
refused "does not name docs/forgotten.md"
# A document that no group of the navigation has, and a group that is too long.
echo '- [Forgotten](forgotten.md): what is it?' >>"$work/tree/docs/README.md"
refused "groups.py has docs/forgotten.md 0 times"
sed -i 's|^\( *\)("Android", .*|&\n\1("Forgotten", "docs/forgotten.md"),|' "$work/tree/tools/site/groups.py"
root_of_pages=$work/tree refused "'Platforms' has more than 7 entries"
# Without the page that learns the first page says so.
python3 "$root/tools/site/pages.py" "$root" "$work/absent" "$work/absent.yml" && grep -q "was built without the page" "$work/absent/index.md" ||
  fail "a site without the page that learns does not say so"

[ "$failures" -eq 0 ] && echo "all held" || { echo "$failures failures"; exit 1; }
