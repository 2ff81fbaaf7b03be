"""Checks that bionic's C library has every symbol that libraries import, by the list in bionic.txt.

    imports.py FILE.so...     prints each symbol that is missing, or newer than the build file's minSdk, and exits 1

Libraries that were linked for a desktop import the same symbols under glibc's names, which are translated first.
Symbols of the C++ library and of the compiler's runtime are linked into a library for Android
(c++_static), and are left out.
"""

import re
import sys
from pathlib import Path

import elf

HERE = Path(__file__).resolve().parent
# Symbols of the C++ library, the unwinder, compiler arithmetic, and the linker; and of our other libraries.
INSIDE = re.compile(
    r"_Z\w*|__cxa_(?!atexit$|finalize$|thread_atexit_impl$)\w+|__gxx_\w+|_Unwind_\w+|__dynamic_cast"
    r"|_ITM_\w+|__gmon_start__|__once_proxy"
    r"|__libc_single_threaded|__(?:u?div|u?mod|mul|popcount|float|fix)\w*?(?:i[2-4]?|[sdtx]i[sdtx]f|c3)|__tls_get_addr"
    r"|wisp_\w+|sqlite3_\w+|crypto_\w+|sodium_\w+|randombytes_\w+|utf8proc_\w+|xnn_\w+"
)
# Maps glibc's names to bionic's.
OTHERWISE = {
    "__errno_location": "__errno",
    "__register_atfork": "pthread_atfork",
    "__ctype_b_loc": "isalpha",  # the table behind glibc's macros of ctype.h
    "fcntl64": "fcntl",
    "bcmp": "memcmp",  # clang replaces memcmp by it for glibc, but not for Android
}
CHECKED = re.compile(r"__(\w+)_chk")


def known():
    """Maps a symbol to the first API level of Android that has it."""
    levels = {}
    for line in (HERE / "bionic.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            levels.update(dict.fromkeys(words[1:], int(words[0])))
    return levels


def name_in_bionic(symbol):
    symbol = OTHERWISE.get(symbol, symbol)
    checked = CHECKED.fullmatch(symbol)
    # Bionic has checked variants of its own, so the function behind them is looked up.
    return checked.group(1) if checked and symbol != "__stack_chk_fail" else symbol


def missing(file, levels, level):
    for symbol in elf.read(file).imported:
        if INSIDE.fullmatch(symbol):
            continue
        name = name_in_bionic(symbol)
        if name not in levels:
            yield f"{symbol} is not in bionic.txt: if bionic has it, add it with its level, else do without"
        elif levels[name] > level:
            yield f"{name} is in bionic from level {levels[name]} on, and minSdk is {level}"


def main(files):
    level = int(re.search(r"minSdk = (\d+)", (HERE / "build.gradle.kts").read_text()).group(1))
    code = 0
    for file in files:
        for sentence in missing(file, known(), level):
            code = 1
            print(f"{file}: {sentence}")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"imports.py: {error}")
