#include "tests/cuda/smoke.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void smoke_fail(const char *format, ...)
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
        fputs("usage: smoke --list\n       smoke [--library FILE] TEST\n", stderr);
        return 2;
}

template <class Deed> static void for_each_test(Deed deed)
{
        for (size_t i = 0; i < smoke_device_test_count; i++)
                deed(smoke_device_tests[i]);
        for (size_t i = 0; i < smoke_backend_test_count; i++)
                deed(smoke_backend_tests[i]);
}

int main(int argc, char **argv)
{
        const char *library = nullptr;
        bool found = false;
        int i = 1;

        if (argc == 2 && !strcmp(argv[1], "--list")) {
                for_each_test([](const smoke_test &smoke_test) { puts(smoke_test.name); });
                return 0;
        }
        if (argc == 4 && !strcmp(argv[1], "--library")) {
                library = argv[2];
                i = 3;
        }
        if (i != argc - 1)
                return refuse();
        for_each_test([&](const smoke_test &smoke_test) {
                if (strcmp(smoke_test.name, argv[i]))
                        return;
                found = true;
                smoke_test.run(library);
        });
        return found ? 0 : refuse();
}
