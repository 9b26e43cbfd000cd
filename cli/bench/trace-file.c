#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench/files.h"
#include "json/reader.h"

#define NODES_MAX   UINT32_C(1000000)
#define COLUMNS_MAX 64u

/* The facts of a trace about a request. */
enum column { COLUMN_TIME, COLUMN_INPUT, COLUMN_OUTPUT, COLUMN_HASHES, COLUMNS, COLUMN_OTHER };

/* The names of columns, in small letters, without blanks, "_" and "-". */
static const struct {
        const char *name;
        enum column column;
} names[] = {
        { "timestamp", COLUMN_TIME },          { "time", COLUMN_TIME },
        { "arrivaltime", COLUMN_TIME },        { "arrival", COLUMN_TIME },
        { "contexttokens", COLUMN_INPUT },     { "inputlength", COLUMN_INPUT },
        { "inputtokens", COLUMN_INPUT },       { "requesttokens", COLUMN_INPUT },
        { "prompttokens", COLUMN_INPUT },      { "numprefilltokens", COLUMN_INPUT },
        { "generatedtokens", COLUMN_OUTPUT },  { "outputlength", COLUMN_OUTPUT },
        { "outputtokens", COLUMN_OUTPUT },     { "responsetokens", COLUMN_OUTPUT },
        { "completiontokens", COLUMN_OUTPUT }, { "numdecodetokens", COLUMN_OUTPUT },
        { "hashids", COLUMN_HASHES },
};

struct reading {
        struct workload *workload;
        double unit; /* seconds of one unit of a plain number */
        uint32_t skip, count, line, seen;
        double began, last;
        enum column columns[COLUMNS_MAX]; /* CSV */
        uint32_t column_count;
        char *why;
        size_t why_bytes;
};

static enum column column_of(const char *name, size_t bytes)
{
        char plain[32];
        size_t n = 0;

        for (size_t i = 0; i < bytes; i++)
                if (isalnum((unsigned char)name[i]) && n < sizeof(plain) - 1)
                        plain[n++] = (char)tolower((unsigned char)name[i]);
        plain[n] = '\0';
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(plain, names[i].name))
                        return names[i].column;
        return COLUMN_OTHER;
}

static int refuse(struct reading *r, const char *what)
{
        snprintf(r->why, r->why_bytes, "line %u: %s", r->line, what);
        return -EBADMSG;
}

/* "2023-11-16 18:17:03.9799600+00:00", with a T or a blank; or a number. */
static bool read_time(const struct reading *r, const char *text, double *ret_s)
{
        struct tm day = { 0 };
        double seconds;
        char *end;

        if (sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%lf", &day.tm_year, &day.tm_mon, &day.tm_mday,
                   &day.tm_hour, &day.tm_min, &seconds) == 6) {
                day.tm_year -= 1900;
                day.tm_mon -= 1;
                *ret_s = (double)timegm(&day) + seconds;
                return seconds >= 0 && seconds < 62;
        }
        *ret_s = strtod(text, &end) * r->unit;
        return end != text && !*end && *ret_s >= 0 && *ret_s < 1e15;
}

/* One request; its hashes are the last of the workload, from `first_hash` on. */
static int add(struct reading *r, double at, double input, double output, uint32_t first_hash)
{
        struct workload *workload = r->workload;
        struct work work = { .first_hash = first_hash,
                             .hash_count = workload->hash_count - first_hash };

        if (!(input >= 0 && input <= LENGTH_MAX && output >= 0 && output <= LENGTH_MAX))
                return refuse(r, "a length is not 0 to 10000000 tokens");
        if (r->seen && at < r->last)
                return refuse(r, "it is earlier than the one before");
        r->last = at;
        if (r->seen++ < r->skip || (r->count && workload->count == r->count)) {
                workload->hash_count = first_hash;
                return 0;
        }
        if (!workload->count)
                r->began = at;
        work.at = at - r->began;
        work.input = input < 1 ? 1 : (uint32_t)input;
        work.output = output < 1 ? 1 : (uint32_t)output;
        return workload_add(workload, &work);
}

/* ---- CSV ---- */

/*
 * The next field of a line, without its quotes; *at moves behind its comma, or to NULL behind the
 * last one.  The line is changed.
 */
static char *next_field(char **at)
{
        char *field = *at + strspn(*at, " \t"), *end;

        if (*field == '"') {
                end = strchr(++field, '"');
                if (!end)
                        end = field + strlen(field);
                else
                        *end++ = '\0';
                end += strcspn(end, ",");
        } else {
                end = field + strcspn(field, ",");
        }
        *at = *end ? end + 1 : NULL;
        *end = '\0';
        return field;
}

static int read_names(struct reading *r, char *line)
{
        unsigned found = 0;

        for (char *at = line; at && r->column_count < COLUMNS_MAX;) {
                char *name = next_field(&at);
                enum column column = column_of(name, strlen(name));

                r->columns[r->column_count++] = column;
                found |= 1u << column;
        }
        if ((found & 7) == 7)
                return 0;
        return refuse(r, "a trace in CSV needs columns such as timestamp, input_length and "
                         "output_length");
}

static int read_hashes(struct reading *r, const char *text)
{
        int e = 0;

        while (*text && !e) {
                char *end;
                uint64_t hash = strtoull(text, &end, 10);

                if (end == text) {
                        text++;
                        continue;
                }
                e = workload_add_hash(r->workload, hash);
                text = end;
        }
        return e;
}

static bool read_length(const char *text, double *ret_length)
{
        char *end;

        *ret_length = strtod(text, &end);
        return end != text && !end[strspn(end, " \r")];
}

static int read_row(struct reading *r, char *line)
{
        uint32_t first_hash = r->workload->hash_count;
        double at = -1, lengths[2] = { -1, -1 };
        bool good = true;
        int e = 0;

        for (uint32_t i = 0; i < r->column_count && line && !e; i++) {
                char *field = next_field(&line);

                if (r->columns[i] == COLUMN_TIME)
                        good = good && read_time(r, field, &at);
                else if (r->columns[i] == COLUMN_INPUT || r->columns[i] == COLUMN_OUTPUT)
                        good = good && read_length(field, &lengths[r->columns[i] - COLUMN_INPUT]);
                else if (r->columns[i] == COLUMN_HASHES)
                        e = read_hashes(r, field);
        }
        if (!e && !good)
                return refuse(r, "it needs a time and two lengths");
        return e ? e : add(r, at, lengths[0], lengths[1], first_hash);
}

/* ---- lines of JSON ---- */

static int read_object(struct reading *r, const struct json_document *json)
{
        uint32_t first_hash = r->workload->hash_count, at[COLUMNS], node;
        double time, input = -1, output = -1;
        const char *text;
        uint64_t hash;
        int e = 0;

        for (int i = 0; i < COLUMNS; i++)
                at[i] = JSON_NONE;
        for (node = json_first(json, 0); node != JSON_NONE; node = json_next(json, node)) {
                const char *key = json_key(json, node, NULL);
                enum column column = column_of(key, strlen(key));

                if (column < COLUMNS)
                        at[column] = node;
        }
        text = json_kind(json, at[COLUMN_TIME]) == JSON_NUMBER
                       ? json_number(json, at[COLUMN_TIME])
                       : json_string(json, at[COLUMN_TIME], NULL);
        if (!text || !read_time(r, text, &time) || !json_real(json, at[COLUMN_INPUT], &input) ||
            !json_real(json, at[COLUMN_OUTPUT], &output))
                return refuse(r, "it needs \"timestamp\", \"input_length\" and \"output_length\"");
        for (node = json_first(json, at[COLUMN_HASHES]); node != JSON_NONE && !e;
             node = json_next(json, node)) {
                if (!json_whole(json, node, &hash))
                        return refuse(r, "\"hash_ids\" is not a list of whole numbers");
                e = workload_add_hash(r->workload, hash);
        }
        return e ? e : add(r, time, input, output, first_hash);
}

static int read_json(struct reading *r, const char *line)
{
        struct json_document *json;
        char why[160];
        int e = json_parse(line, strlen(line), NODES_MAX, &json, why, sizeof(why));

        if (e)
                return e == -ENOMEM ? e : refuse(r, why);
        e = read_object(r, json);
        json_free(json);
        return e;
}

/* ---- lines ---- */

static int read_lines(struct reading *r, char *text)
{
        bool is_json = text[strspn(text, " \t\r\n")] == '{';
        char *behind;
        int e = 0;

        for (; *text && !e; text = behind) {
                behind = text + strcspn(text, "\n");
                if (*behind)
                        *behind++ = '\0';
                text[strcspn(text, "\r")] = '\0';
                r->line++;
                if (!text[strspn(text, " \t")])
                        continue;
                if (is_json)
                        e = read_json(r, text);
                else
                        e = r->column_count ? read_row(r, text) : read_names(r, text);
        }
        return e;
}

int trace_file_read(const char *text, size_t bytes, enum bench_unit unit, uint32_t skip,
                    uint32_t count, struct workload *workload, char *why, size_t why_bytes)
{
        bool is_json = text[strspn(text, " \t\r\n")] == '{';
        struct reading r = { .workload = workload,
                             .skip = skip,
                             .count = count,
                             .why = why,
                             .why_bytes = why_bytes };
        char *copy = malloc(bytes + 1);
        int e = -ENOMEM;

        /* Mooncake's JSON has milliseconds, and published CSV has seconds. */
        r.unit = unit == BENCH_UNIT_MS || (unit == BENCH_UNIT_AUTO && is_json) ? 1e-3 : 1;
        if (copy) {
                memcpy(copy, text, bytes);
                copy[bytes] = '\0';
                e = read_lines(&r, copy);
        }
        free(copy);
        if (!e && !workload->count) {
                snprintf(why, why_bytes, "it has %u requests; none is left behind the first %u",
                         r.seen, skip);
                e = -ERANGE;
        }
        if (e == -ENOMEM)
                snprintf(why, why_bytes, "out of memory");
        return e;
}
