#include "tests/cuda/ladder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ladder_fail(const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        exit(1);
}

static int refuse(void)
{
        fputs("usage: ladder --list\n       ladder [--library FILE] RUNG\n", stderr);
        return 2;
}

template <class Deed> static void for_each_rung(Deed deed)
{
        for (size_t i = 0; i < device_rung_count; i++)
                deed(device_rungs[i]);
        for (size_t i = 0; i < backend_rung_count; i++)
                deed(backend_rungs[i]);
}

int main(int argc, char **argv)
{
        const char *library = nullptr;
        bool found = false;
        int i = 1;

        if (argc == 2 && !strcmp(argv[1], "--list")) {
                for_each_rung([](const rung &rung) { puts(rung.name); });
                return 0;
        }
        if (argc == 4 && !strcmp(argv[1], "--library")) {
                library = argv[2];
                i = 3;
        }
        if (i != argc - 1)
                return refuse();
        for_each_rung([&](const rung &rung) {
                if (strcmp(rung.name, argv[i]))
                        return;
                found = true;
                rung.climb(library);
        });
        return found ? 0 : refuse();
}
