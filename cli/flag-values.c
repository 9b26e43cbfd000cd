/* The values of flags: each is checked here, so that a mistake is told before a daemon is asked. */
#include "cli/flag.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The least interval of --watch, and the longest, in seconds. */
#define SECONDS_MIN 0.1
#define SECONDS_MAX 86400.0

static int refuse(const struct flag *flag, const char *value, const char *wanted)
{
        say("%s is %.40s; it may be %s", flag->name, *value ? value : "empty", wanted);
        return CLI_USAGE;
}

static int set_whole(const struct flag *flag, const char *value, uint64_t *ret_number)
{
        uint64_t low = flag->kind == FLAG_COUNT ? 1 : (uint64_t)flag->low, high = UINT32_MAX;
        unsigned long long number;
        char wanted[64], *end;

        if (flag->kind == FLAG_UINT64)
                high = UINT64_MAX;
        if (flag->high > 0)
                high = (uint64_t)flag->high;
        errno = 0;
        number = strtoull(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || errno || number < low || number > high) {
                snprintf(wanted, sizeof(wanted), "%" PRIu64 " to %" PRIu64, low, high);
                return refuse(flag, value, wanted);
        }
        *ret_number = number;
        return 0;
}

static int set_real(const struct flag *flag, const char *value, double *ret_number)
{
        bool limited = flag->high > 0;
        char wanted[64], *end;
        double number = strtod(value, &end);

        if (end != value && !*end && isfinite(number) &&
            (!limited || (number >= flag->low && number <= flag->high &&
                          !(flag->above && number <= flag->low)))) {
                *ret_number = number;
                return 0;
        }
        if (!limited)
                return refuse(flag, value, "any number");
        snprintf(wanted, sizeof(wanted), flag->above ? "above %.9g, up to %.9g" : "%.9g to %.9g",
                 flag->low, flag->high);
        return refuse(flag, value, wanted);
}

/* Without a value: one second. */
static int set_seconds(const struct flag *flag, const char *value, double *ret_seconds)
{
        struct flag limited = *flag;

        if (!value)
                *ret_seconds = 1;
        limited.low = SECONDS_MIN;
        limited.high = SECONDS_MAX;
        return value ? set_real(&limited, value, ret_seconds) : 0;
}

static int set_word(const struct flag *flag, const char *value, unsigned *ret_which)
{
        char wanted[128] = "";
        size_t used = 0;

        for (unsigned i = 0; flag->words[i]; i++) {
                const char *between = !i ? "" : flag->words[i + 1] ? ", " : " or ";

                if (!strcmp(value, flag->words[i])) {
                        *ret_which = i;
                        return 0;
                }
                used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s", between,
                                         flag->words[i]);
        }
        return refuse(flag, value, wanted);
}

/* Adds the value to a list of at most `max` texts. */
static int add_text(const struct flag *flag, const char *value, const char **texts, size_t max,
                    size_t *count)
{
        size_t bytes = strlen(value);

        if (*count == max) {
                say("%s may be given at most %zu times", flag->name, max);
                return CLI_USAGE;
        }
        if (!bytes || bytes > SMV_STOP_BYTES_MAX) {
                say("%s has %zu bytes; it may have 1 to %u", flag->name, bytes, SMV_STOP_BYTES_MAX);
                return CLI_USAGE;
        }
        texts[(*count)++] = value;
        return 0;
}

bool flag_takes(const struct flag *flag, const char *next)
{
        if (flag->kind == FLAG_SECONDS)
                return next && (*next == '.' || (*next >= '0' && *next <= '9'));
        return flag->kind != FLAG_SWITCH;
}

int flag_set(struct cli *cli, const struct flag *flag, const char *value)
{
        void *field = (char *)cli + flag->offset;
        uint64_t number = 0;
        double real = 0;
        int r = 0;

        switch (flag->kind) {
        case FLAG_TEXT:
                *(const char **)field = value;
                break;
        case FLAG_SWITCH:
                *(bool *)field = true;
                break;
        case FLAG_COUNT:
        case FLAG_UINT32:
                r = set_whole(flag, value, &number);
                if (!r)
                        *(uint32_t *)field = (uint32_t)number;
                break;
        case FLAG_UINT64:
                r = set_whole(flag, value, field);
                break;
        case FLAG_FLOAT:
                r = set_real(flag, value, &real);
                if (!r)
                        *(float *)field = (float)real;
                break;
        case FLAG_SECONDS:
                r = set_seconds(flag, value, field);
                break;
        case FLAG_WORD:
                r = set_word(flag, value, field);
                break;
        case FLAG_STOP:
                r = add_text(flag, value, cli->stops, SMV_STOPS_MAX, &cli->generate.stop_count);
                break;
        case FLAG_CHOICE:
                r = add_text(flag, value, cli->choices, CHOICES_MAX, &cli->choice_count);
                break;
        case FLAG_BAN:
                r = add_text(flag, value, cli->bans, SMV_BANNED_TEXTS_MAX,
                             &cli->generate.banned_text_count);
                break;
        case FLAG_TOOL:
                r = add_text(flag, value, cli->allowed_tools, SMV_BANNED_TEXTS_MAX,
                             &cli->generate.allowed_tool_count);
                break;
        }
        if (!r)
                cli->generate.set |= flag->set;
        return r;
}

/* Where the count of a flag's texts is; NULL: the flag is no list. */
static size_t *count_of(struct cli *cli, const struct flag *flag)
{
        switch (flag->kind) {
        case FLAG_STOP:
                return &cli->generate.stop_count;
        case FLAG_BAN:
                return &cli->generate.banned_text_count;
        case FLAG_CHOICE:
                return &cli->choice_count;
        case FLAG_TOOL:
                return &cli->generate.allowed_tool_count;
        default:
                return NULL;
        }
}

static size_t bytes_of(enum flag_kind kind)
{
        switch (kind) {
        case FLAG_TEXT:
                return sizeof(const char *);
        case FLAG_SWITCH:
                return sizeof(bool);
        case FLAG_UINT64:
                return sizeof(uint64_t);
        case FLAG_SECONDS:
                return sizeof(double);
        default:
                return sizeof(uint32_t); /* so large are also a float and an enum */
        }
}

void flag_unset(struct cli *cli, const struct flag *flag)
{
        size_t *count = count_of(cli, flag);

        if (count)
                *count = 0;
        else
                memset((char *)cli + flag->offset, 0, bytes_of(flag->kind));
        cli->generate.set &= ~flag->set;
}

static void show_list(const char *const *texts, size_t count, char *to, size_t bytes)
{
        size_t used = 0;

        for (size_t i = 0; i < count && used < bytes; i++)
                used += (size_t)snprintf(to + used, bytes - used, "%s'%s'", i ? " " : "", texts[i]);
}

bool flag_show(const struct cli *cli, const struct flag *flag, char *to, size_t bytes)
{
        static const char zeroes[8];
        const void *field = (const char *)cli + flag->offset;
        const char *const *texts = flag->kind == FLAG_STOP     ? cli->stops
                                   : flag->kind == FLAG_BAN    ? cli->bans
                                   : flag->kind == FLAG_CHOICE ? cli->choices
                                                               : cli->allowed_tools;
        const size_t *count = count_of((struct cli *)(uintptr_t)cli, flag);

        if (count) {
                show_list(texts, *count, to, bytes);
                return *count;
        }
        if (!memcmp(field, zeroes, bytes_of(flag->kind)) && !(cli->generate.set & flag->set))
                return false;
        if (flag->kind == FLAG_TEXT)
                snprintf(to, bytes, "%s", *(const char *const *)field);
        else if (flag->kind == FLAG_SWITCH)
                snprintf(to, bytes, "on");
        else if (flag->kind == FLAG_FLOAT)
                snprintf(to, bytes, "%g", (double)*(const float *)field);
        else if (flag->kind == FLAG_SECONDS)
                snprintf(to, bytes, "%g", *(const double *)field);
        else if (flag->kind == FLAG_UINT64)
                snprintf(to, bytes, "%" PRIu64, *(const uint64_t *)field);
        else if (flag->kind == FLAG_WORD)
                snprintf(to, bytes, "%s", flag->words[*(const unsigned *)field]);
        else
                snprintf(to, bytes, "%" PRIu32, *(const uint32_t *)field);
        return true;
}
