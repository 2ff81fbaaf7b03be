// Apple's systems have here the functions that glibc has in locale.h.
#include <locale.h>
