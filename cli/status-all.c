/*
 * status --all: prints the daemon's JSON as a table: one line for each value, named by its path.
 * An array of numbers is one value.
 *
 * The JSON comes from our own library.  It has no white space, and characters that a
 * terminal must not see are escaped; walk() relies on that.
 */
#include "cli/status.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 256

struct table {
        const char *at;
        char path[PATH_BYTES];
        int width; /* of the longest path; the first walk() measures it */
        bool print;
};

/* `at` is at a string's opening quote.  Returns the place after its closing quote. */
static const char *string_end(const char *at)
{
        for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && at[1])
                        at++;
        return *at ? at + 1 : at;
}

static void print_value(struct table *table, const char *value, size_t bytes)
{
        int width = (int)strlen(table->path);

        if (table->print)
                printf("%-*s  %.*s\n", table->width, table->path, (int)bytes, value);
        else if (width > table->width)
                table->width = width;
}

static void walk(struct table *table);

static void walk_member(struct table *table, bool keyed, unsigned index)
{
        size_t parent = strlen(table->path);
        const char *dot = parent ? "." : "", *key = table->at;

        if (keyed) {
                table->at = string_end(key);
                snprintf(table->path + parent, PATH_BYTES - parent, "%s%.*s", dot,
                         (int)(table->at - key) - 2, key + 1);
                table->at++; /* the colon */
        } else {
                snprintf(table->path + parent, PATH_BYTES - parent, "%s%u", dot, index);
        }
        walk(table);
        table->path[parent] = '\0';
}

/* Walks a value of any type.  Recursion is fine: the library has limited the depth. */
static void walk(struct table *table)
{
        const char *value = table->at;
        bool keyed = *value == '{';
        size_t bytes;

        if (*value == '"') {
                table->at = string_end(value);
                print_value(table, value + 1, (size_t)(table->at - value) - 2);
        } else if (keyed || *value == '[') {
                if (value[1] == '}' || value[1] == ']') {
                        table->at += 2;
                        print_value(table, "-", 1);
                        return;
                }
                if (!keyed && value[1] >= '0' && value[1] <= '9') {
                        bytes = strcspn(value, "]");
                        table->at += bytes + 1;
                        print_value(table, value + 1, bytes - 1);
                        return;
                }
                for (unsigned i = 0; *table->at && *table->at != '}' && *table->at != ']'; i++) {
                        table->at++; /* the bracket or the comma */
                        walk_member(table, keyed, i);
                }
                if (*table->at)
                        table->at++;
        } else {
                bytes = strcspn(value, ",]}");
                table->at += bytes;
                print_value(table, value, bytes);
        }
}

void status_print_all(const char *json)
{
        struct table table = { .at = json };

        walk(&table);
        table.at = json;
        table.print = true;
        walk(&table);
}
