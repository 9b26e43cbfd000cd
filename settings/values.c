#include "settings/values.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/distance.h"

/* ---- names ---- */

int setting_refuse_name(const struct settings_table *table, const struct settings_place *at,
                        const char *name, size_t bytes)
{
        const struct setting *nearest = NULL;
        uint32_t best = DISTANCE_NONE;
        char as[48];

        for (size_t i = 0; i < table->count; i++)
                if (!(at->file && table->rows[i].use == FLAG_ONLY) &&
                    distance_is_hint(name, bytes, table->rows[i].name, &best))
                        nearest = &table->rows[i];
        return settings_refuse(at, "there is no setting %s%.*s%s%s%s", at->file ? "" : "--",
                               (int)(bytes < 40 ? bytes : 40), name, nearest ? "; is " : "",
                               nearest ? settings_shown(at, nearest->name, as, sizeof(as)) : "",
                               nearest ? " meant?" : "");
}

/* A flag has dashes where the table has underscores. */
const struct setting *setting_find(const struct settings_table *table,
                                   const struct settings_place *at, const char *name, size_t bytes)
{
        for (size_t i = 0; i < table->count; i++) {
                const char *known = table->rows[i].name;
                size_t j = 0;

                if (strlen(known) != bytes || (at->file && table->rows[i].use == FLAG_ONLY))
                        continue;
                while (j < bytes && name[j] == (!at->file && known[j] == '_' ? '-' : known[j]))
                        j++;
                if (j == bytes)
                        return &table->rows[i];
        }
        return NULL;
}

/* ---- values ---- */

static int set_text(const struct settings_place *at, char **to, const char *value)
{
        char *copy = strdup(value);

        if (!copy) {
                snprintf(at->why, at->why_bytes, "out of memory");
                return error_raise(-ENOMEM);
        }
        free(*to);
        *to = copy;
        return 0;
}

static int read_word(const struct setting *s, const struct settings_place *at, const char *value,
                     uint32_t *ret_index)
{
        char as[48], all[64] = "";
        size_t used = 0;

        for (uint32_t i = 0; s->words[i]; i++) {
                if (!strcmp(s->words[i], value)) {
                        *ret_index = i;
                        return 0;
                }
                used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                         s->words[i]);
        }
        return settings_refuse(at, "%s is %.40s; it may be %s",
                               settings_shown(at, s->name, as, sizeof(as)), value, all);
}

/*
 * Connecting needs the write permission, and no other mode bit has a meaning for a socket.  So
 * there are three modes.  A mode that suggests more than that (0777, 0640) is a mistake.  660 means
 * 0660, as for chmod.
 */
static int read_mode(const struct setting *s, const struct settings_place *at, const char *value,
                     uint32_t *ret_mode)
{
        uint32_t word;
        int r;

        for (uint32_t i = 0; s->words[i]; i++)
                if (!strcmp(s->words[i] + 1, value))
                        value = s->words[i];
        r = read_word(s, at, value, &word);
        if (!r)
                *ret_mode = (uint32_t)strtoul(s->words[word], NULL, 8);
        return r;
}

const char *setting_sized(enum setting_kind kind, uint64_t n, char *to, size_t bytes)
{
        uint32_t unit = 0;

        while (kind == KIND_BYTES && n && n % 1024 == 0 && unit < 3) {
                n /= 1024;
                unit++;
        }
        snprintf(to, bytes, "%" PRIu64 "%.1s", n, &"\0KMG"[unit]);
        return to;
}

/* Digits, and for sizes one of K, M, G.  False: not a number, or it does not fit 64 bits. */
static bool read_digits(enum setting_kind kind, const char *value, uint64_t *ret_number)
{
        static const char units[] = "KMG";
        uint64_t n = 0;
        const char *unit;

        if (!*value)
                return false;
        for (; *value >= '0' && *value <= '9'; value++)
                if (__builtin_mul_overflow(n, 10u, &n) ||
                    __builtin_add_overflow(n, (uint64_t)(*value - '0'), &n))
                        return false;
        if (*value && kind == KIND_BYTES) {
                unit = strchr(units, *value++);
                if (!unit || __builtin_mul_overflow(n, UINT64_C(1024) << 10 * (unit - units), &n))
                        return false;
        }
        *ret_number = n;
        return !*value;
}

static int read_number(const struct setting *s, const struct settings_place *at, const char *value,
                       uint64_t *ret_number)
{
        char as[48], low[24], high[24];
        uint64_t n;

        if (!read_digits(s->kind, value, &n) || n < s->low || n > s->high)
                return settings_refuse(at, "%s is %.40s; it may be from %s to %s%s",
                                       settings_shown(at, s->name, as, sizeof(as)), value,
                                       setting_sized(s->kind, s->low, low, sizeof(low)),
                                       setting_sized(s->kind, s->high, high, sizeof(high)),
                                       s->kind == KIND_BYTES ? ", written like 512M" : "");
        *ret_number = n;
        return 0;
}

static int read_some(const struct setting *s, const struct settings_place *at, const char *value,
                     uint32_t *ret_number)
{
        char as[48];
        uint64_t n;

        for (uint32_t i = 0; s->words[i]; i++)
                if (!strcmp(s->words[i], value)) {
                        *ret_number = UINT32_MAX - i;
                        return 0;
                }
        if (!read_digits(s->kind, value, &n) || n < s->low || n > s->high)
                return settings_refuse(
                        at, "%s is %.40s; it may be %s, %s, or from %" PRIu64 " to %" PRIu64,
                        settings_shown(at, s->name, as, sizeof(as)), value, s->words[0],
                        s->words[1], s->low, s->high);
        *ret_number = (uint32_t)n;
        return 0;
}

static int read_switch(const struct setting *s, const struct settings_place *at, const char *value,
                       bool *ret_on)
{
        char as[48];

        if (strcmp(value, "yes") && strcmp(value, "no"))
                return settings_refuse(at, "%s is %.40s; it may be yes or no",
                                       settings_shown(at, s->name, as, sizeof(as)), value);
        *ret_on = value[0] == 'y';
        return 0;
}

int setting_set(void *values, const struct setting *s, const struct settings_place *at,
                const char *value)
{
        void *to = (char *)values + s->offset;
        uint64_t n = 0;
        uint32_t word;
        char as[48];
        int r;

        switch (s->kind) {
        case KIND_TEXT:
                if (!*value)
                        return settings_refuse(at, "%s is empty",
                                               settings_shown(at, s->name, as, sizeof(as)));
                return set_text(at, to, value);
        case KIND_NAME:
                r = read_word(s, at, value, &word);
                return r ? r : set_text(at, to, value);
        case KIND_WORD:
                return read_word(s, at, value, to);
        case KIND_MODE:
                return read_mode(s, at, value, to);
        case KIND_SWITCH:
                return read_switch(s, at, value, to);
        case KIND_SOME:
                return read_some(s, at, value, to);
        default:
                break;
        }
        r = read_number(s, at, value, &n);
        if (r)
                return error_pass(r);
        if (s->kind == KIND_BYTES)
                *(uint64_t *)to = n;
        else
                *(uint32_t *)to = (uint32_t)n; /* an int32_t setting has its maximum at INT32_MAX */
        return 0;
}
