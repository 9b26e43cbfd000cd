#include <inttypes.h>
#include <stdio.h>

#include "settings/settings.h"
#include "settings/values.h"

/* The values that a setting may have, as --help shows them; "" if the value's name says it. */
static void print_values(const struct setting *s, char *to, size_t bytes)
{
        char low[24], high[24];
        size_t used = 0;

        *to = '\0';
        switch (s->kind) {
        case KIND_TEXT:
        case KIND_SWITCH:
                break;
        case KIND_NAME:
        case KIND_WORD:
        case KIND_MODE:
                for (uint32_t i = 0; s->words[i] && used < bytes; i++)
                        used += (size_t)snprintf(to + used, bytes - used, "%s%s", i ? ", " : "",
                                                 s->words[i]);
                break;
        case KIND_SOME:
                snprintf(to, bytes, "%s, %s, %" PRIu64 " to %" PRIu64, s->words[0], s->words[1],
                         s->low, s->high);
                break;
        default:
                snprintf(to, bytes, "%s to %s", setting_sized(s->kind, s->low, low, sizeof(low)),
                         setting_sized(s->kind, s->high, high, sizeof(high)));
        }
}

bool settings_describe(const struct settings_table *table, size_t index,
                       struct settings_row *ret_row)
{
        static const char *const stands_for[] = {
                [KIND_NAME] = "WORD",  [KIND_WORD] = "WORD",    [KIND_MODE] = "MODE",
                [KIND_INT] = "NUMBER", [KIND_COUNT] = "NUMBER", [KIND_BYTES] = "SIZE",
                [KIND_SWITCH] = "",    [KIND_SOME] = "NUMBER",
        };
        const struct setting *s;

        if (index >= table->count)
                return false;
        s = &table->rows[index];
        *ret_row = (struct settings_row){
                .group = s->group,
                .name = s->name,
                .value = s->kind == KIND_TEXT ? s->words[0] : stands_for[s->kind],
                .initial = s->initial && s->kind != KIND_SWITCH ? s->initial : "",
                .help = s->help,
                .flag_only = s->use == FLAG_ONLY,
                .live = s->use == LIVE,
        };
        print_values(s, ret_row->values, sizeof(ret_row->values));
        return true;
}

bool settings_limit(const struct settings_table *table, const void *values, uint32_t *index,
                    const char **ret_name, uint64_t *ret_value)
{
        while (*index < table->count) {
                const struct setting *s = &table->rows[(*index)++];
                const void *value = (const char *)values + s->offset;

                if (s->use == FLAG_ONLY)
                        continue;
                *ret_name = s->name;
                switch (s->kind) {
                case KIND_COUNT:
                        *ret_value = *(const uint32_t *)value;
                        return true;
                case KIND_BYTES:
                        *ret_value = *(const uint64_t *)value;
                        return true;
                case KIND_SWITCH:
                        *ret_value = *(const bool *)value;
                        return true;
                default:
                        break;
                }
        }
        return false;
}

void settings_help(const struct settings_table *table, FILE *to)
{
        struct settings_place flag = { .file = NULL };
        struct settings_row row;

        fprintf(to, "usage: %s %s\n", table->program, table->synopsis);
        for (size_t i = 0; settings_describe(table, i, &row); i++) {
                char as[48], line[80];

                if (row.group)
                        fprintf(to, "\n%s\n", row.group);
                snprintf(line, sizeof(line), "%s %s",
                         settings_shown(&flag, row.name, as, sizeof(as)), row.value);
                fprintf(to, "  %-28s %s%s%s", line, row.help, *row.values ? "; " : "", row.values);
                if (*row.initial)
                        fprintf(to, " [%s]", row.initial);
                fputs(row.flag_only ? "; not in a file\n"
                      : row.live    ? "; SIGHUP reloads it\n"
                                    : "\n",
                      to);
        }
        fputs("\nA size takes K, M or G.  A config file has lines `name = value`, with _ for - in\n"
              "names, and comments that begin with #.\n",
              to);
}
