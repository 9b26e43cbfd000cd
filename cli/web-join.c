#include "cli/web.h"

#include <stdio.h>
#include <string.h>

bool web_join(const char *base, const char *path, char *to, size_t bytes)
{
        bool is_unix = !strncmp(base, "unix:/", 6);
        size_t length = strlen(base);
        int n;

        if (!is_unix && strncmp(base, "http://", 7) && strncmp(base, "https://", 8))
                return false;
        while (length && base[length - 1] == '/')
                length--;
        if (is_unix && length && base[length - 1] == ':')
                length--;
        path += strspn(path, "/");
        n = snprintf(to, bytes, "%.*s%s/%s", (int)length, base,
                     is_unix && !memmem(base + 6, length - 6, ":/", 2) ? ":" : "", path);
        return n > 0 && (size_t)n < bytes;
}
