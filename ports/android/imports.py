"""Whether all that libraries ask of the C library is in bionic's, by the list in bionic.txt.

    imports.py FILE.so...     prints each symbol that is not, or that is newer than the build file's minSdk, and exits 1

Libraries that were linked for a desktop say of what ours is made, under glibc's names: those are translated first.
What the C++ library and the compiler's own bring along is linked into a library for Android
(c++_static), and is left out.
"""

import re
import sys
from pathlib import Path

import elf

HERE = Path(__file__).resolve().parent
# The C++ library, the unwinder, arithmetic of the compiler, marks of the linker; and other libraries of ours.
INSIDE = re.compile(
    r"_Z\w*|__cxa_(?!atexit$|finalize$|thread_atexit_impl$)\w+|__gxx_\w+|_Unwind_\w+|__dynamic_cast"
    r"|_ITM_\w+|__gmon_start__|__once_proxy"
    r"|__libc_single_threaded|__(?:u?div|u?mod|mul|popcount|float|fix)\w*?(?:i[2-4]?|[sdtx]i[sdtx]f|c3)|__tls_get_addr"
    r"|wisp_\w+|sqlite3_\w+|crypto_\w+|sodium_\w+|utf8proc_\w+|xnn_\w+"
)
# glibc's name -> bionic's.
OTHERWISE = {
    "__errno_location": "__errno",
    "__register_atfork": "pthread_atfork",
    "__ctype_b_loc": "isalpha",  # the table behind glibc's macros of ctype.h
    "fcntl64": "fcntl",
    "bcmp": "memcmp",  # which clang makes of memcmp for glibc, and not for Android
}
CHECKED = re.compile(r"__(\w+)_chk")


def known():
    """Symbol -> the level of Android's interface that has it first."""
    levels = {}
    for line in (HERE / "bionic.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            levels.update(dict.fromkeys(words[1:], int(words[0])))
    return levels


def name_in_bionic(symbol):
    symbol = OTHERWISE.get(symbol, symbol)
    checked = CHECKED.fullmatch(symbol)
    # Bionic has checked variants of its own; what matters is the function behind them.
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
