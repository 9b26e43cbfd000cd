#include "settings/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

int settings_refuse(const struct settings_place *at, const char *format, ...)
{
        int used = 0;
        va_list values;

        if (at->file)
                used = snprintf(at->why, at->why_bytes, "%s:%u: ", at->file, at->line);
        if (used >= 0 && (size_t)used < at->why_bytes) {
                va_start(values, format);
                vsnprintf(at->why + used, at->why_bytes - (size_t)used, format, values);
                va_end(values);
        }
        /* The message may contain user input: keep it on one line, whatever the input is. */
        for (size_t i = 0; i < at->why_bytes && at->why[i]; i++)
                if ((unsigned char)at->why[i] < ' ' || at->why[i] == 0x7f)
                        at->why[i] = '?';
        return error_raise(-EINVAL);
}

const char *settings_shown(const struct settings_place *at, const char *name, char *to,
                           size_t bytes)
{
        snprintf(to, bytes, "%s%s", at->file ? "" : "--", name);
        for (char *c = to; !at->file && *c; c++)
                if (*c == '_')
                        *c = '-';
        return to;
}
