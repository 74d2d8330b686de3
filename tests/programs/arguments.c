/* An argument of each type that PROF_ARG takes, as C and as C++; test_compile.py knows what is written of it.
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

int main(int argc, char **argv)
{
    const bool yes = argc > 0;
    const char letter = 'a', *text = "text", *none = NULL;
    char buffer[] = "buffer";
    const signed char sc = -1;
    const short s = -2;
    const int i = -3;
    const long l = -4;
    const long long ll = -5;
    const unsigned char uc = 1;
    const unsigned short us = 2;
    const unsigned u = 3;
    const unsigned long ul = 4;
    const unsigned long long ull = 18446744073709551615u;
    const float f = 0.5f;
    const double d = 0.25;
    enum { ENUMERATOR = 7 };
    npuprof_start(1);
    PROF_INSTANT(NULL, "integers", PROF_ARGS(PROF_ARG("letter", letter), PROF_ARG("sc", sc), PROF_ARG("s", s),
                                             PROF_ARG("i", i), PROF_ARG("l", l),
                                             PROF_ARG("ll", ll), PROF_ARG("enum", ENUMERATOR)));
    PROF_INSTANT("c", "unsigned", PROF_ARGS(PROF_ARG("uc", uc), PROF_ARG("us", us), PROF_ARG("u", u),
                                            PROF_ARG("ul", ul), PROF_ARG("ull", ull)));
    PROF_INSTANT("c", "others",
                 PROF_ARGS(PROF_ARG("yes", yes), PROF_ARG("f", f), PROF_ARG("d", d), PROF_ARG("text", text),
                                          PROF_ARG("buffer", buffer), PROF_ARG("literal", "literal"),
                                          PROF_ARG("none", none)));
    PROF_INSTANT("c", "nothing");
    return argc == 2 && npuprof_dump(argv[1]) == NPUPROF_OK ? 0 : 1;
}
