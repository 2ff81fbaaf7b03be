# For scripts that make a folder anew: only what the same script made is removed, and only when the new folder is whole.
# Sourced.
#   begin_folder FOLDER SCRIPT   SCRIPT as it is called from the checkout. Ends with a sentence where FOLDER is not the
#                                script's to replace. Sets $made, an empty folder beside it that is gone at the end.
#   place_folder                 puts $made in the place of FOLDER.

begin_folder() {
  local why='' checkout
  made_for=$(realpath -m "$1") made_by=$2
  checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
  if [ -e "$made_for" ] && [ ! -d "$made_for" ]; then why="is no folder"
  elif [[ "$checkout/" == "${made_for%/}/"* ]]; then why="contains the sources that it would be made of"
  elif [ -e "$made_for/.git" ]; then why="is a checkout of git"
  elif [ -n "$(ls -A "$made_for" 2>/dev/null)" ] && [ "$(cat "$made_for/.made-by" 2>/dev/null)" != "$made_by" ]; then
    why="has files, and none that says that $made_by made it (.made-by)"
  fi
  if [ -n "$why" ]; then
    echo "$made_by: '$1' $why: name an empty or a new folder, or one that $made_by made" >&2
    exit 1
  fi
  mkdir -p "$(dirname "$made_for")"
  made=$(mktemp -d "$(dirname "$made_for")/.${made_for##*/}.XXXXXX")
  trap 'rm -rf "$made"' EXIT
  chmod 755 "$made"
}

place_folder() {
  echo "$made_by" >"$made/.made-by"
  rm -rf "$made_for"
  mv -T "$made" "$made_for"
}
