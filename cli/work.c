/*
 * ps: lists the streams and handles that are under way.  cancel: ends one of them.
 *
 * A number has 64 bits, and many readers of JSON keep only 53 of them.  So --json prints numbers
 * that name something as texts.
 */
#include "cli/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/plural.h"
#include "json/writer.h"

#define FACTS_BYTES 256

static uint64_t number_of(const struct json_document *work, uint32_t row, const char *key)
{
        uint64_t number = 0;

        json_whole(work, json_member(work, row, key), &number);
        return number;
}

static const char *word_of(const struct json_document *work, uint32_t row, const char *key)
{
        const char *word = json_string(work, json_member(work, row, key), NULL);

        return word ? word : "?";
}

/* ---- tables ---- */

/* The two largest units: 45s, 3m12s, 2h05m, 4d03h. */
static const char *age_of(uint64_t ms, char to[16])
{
        uint64_t s = ms / 1000;

        if (s < 60)
                snprintf(to, 16, "%us", (unsigned)s);
        else if (s < 3600)
                snprintf(to, 16, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
        else if (s < 86400)
                snprintf(to, 16, "%uh%02um", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
        else
                snprintf(to, 16, "%ud%02uh", (unsigned)(s / 86400 % 100000),
                         (unsigned)(s / 3600 % 24));
        return to;
}

static const char *pid_of(uint64_t pid, char to[16])
{
        snprintf(to, 16, "%" PRIu64, pid);
        return pid ? to : "-";
}

/* An older daemon does not say these numbers. */
static bool says(const struct json_document *work, uint32_t row, const char *key)
{
        return json_member(work, row, key) != JSON_NONE;
}

/* "needs 12 blocks, 9 free (5 cached by others, 2 by its user)" */
static void add_blocks(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        uint64_t cached = number_of(work, row, "free_cached");
        uint64_t needs = number_of(work, row, "needs"), own, others;
        int used = snprintf(to, size, " needs %" PRIu64 " block%s", needs, plural(needs));

        own = number_of(work, row, "free_cached_own");
        own = own < cached ? own : cached; /* the daemon may have changed them one by one */
        others = cached - own;
        if (says(work, row, "free"))
                used += snprintf(to + used, size - (size_t)used, ", %" PRIu64 " free",
                                 number_of(work, row, "free"));
        if (others && own)
                snprintf(to + used, size - (size_t)used,
                         " (%" PRIu64 " cached by others, %" PRIu64 " by its user)", others, own);
        else if (others || own)
                snprintf(to + used, size - (size_t)used, " (%" PRIu64 " cached by %s)",
                         others + own, others ? "others" : "its user");
}

/* "needs 36 window pages, 9 left" */
static void add_windows(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        uint64_t needs = number_of(work, row, "needs");

        snprintf(to, size, " needs %" PRIu64 " window page%s, %" PRIu64 " left", needs,
                 plural(needs), number_of(work, row, "free"));
}

static void add_forecast(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        if (says(work, row, "expected"))
                snprintf(to, size,
                         " waits: the pool is expected to need %" PRIu64 " blocks of %" PRIu64,
                         number_of(work, row, "expected"), number_of(work, row, "pool"));
        else
                snprintf(to, size, " waits until the pool will hold it");
}

static void add_share(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        bool slots = number_of(work, row, "user_slots") > 0;
        const char *has = slots ? "user_slots" : "user_blocks";
        const char *may = slots ? "user_slots_max" : "user_blocks_max";

        if (says(work, row, has))
                snprintf(to, size,
                         " others come first: its user would have %" PRIu64 " %s, its share is "
                         "%" PRIu64,
                         number_of(work, row, has), slots ? "slots" : "blocks",
                         number_of(work, row, may));
        else
                snprintf(to, size, " others come first: its user has its share");
}

/* Adds nothing if it does not wait; handles never do. */
static void add_wait(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        static const char *const why[][2] = {
                { "turn", " behind others" },
                { "slot", " waits for a slot" },
                { "prefix", " waits for a common beginning" },
                { "reader", " its client does not read" },
        };
        const char *word = word_of(work, row, "waits_for");

        if (!strcmp(word, "blocks"))
                add_blocks(work, row, to, size);
        else if (!strcmp(word, "windows"))
                add_windows(work, row, to, size);
        else if (!strcmp(word, "forecast"))
                add_forecast(work, row, to, size);
        else if (!strcmp(word, "share"))
                add_share(work, row, to, size);
        for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++)
                if (!strcmp(word, why[i][0]))
                        snprintf(to, size, "%s", why[i][1]);
}

/* How often it was preempted, and why it waits. */
static const char *facts_of(const struct json_document *work, uint32_t row, char to[FACTS_BYTES])
{
        uint64_t times = number_of(work, row, "preemptions");
        size_t used = 0;

        to[0] = '\0';
        add_wait(work, row, to, FACTS_BYTES);
        used = strlen(to);
        if (times)
                snprintf(to + used, FACTS_BYTES - used, "%s preempted %" PRIu64 " time%s",
                         used ? ";" : "", times, plural(times));
        return to;
}

static int print_row(struct screen *screen, const struct json_document *work, uint32_t row,
                     const char *kind, const char *state)
{
        const char *principal = json_string(work, json_member(work, row, "principal"), NULL);
        char line[512], user[USER_NAME_BYTES], age[16], pid[16], facts[FACTS_BYTES];

        snprintf(line, sizeof(line), "%-20" PRIu64 " %-9s %-8s %-12s %8s %9" PRIu64 " %7s %s%s\n",
                 number_of(work, row, "number"), kind, state,
                 user_name(number_of(work, row, "uid"), principal, user),
                 pid_of(number_of(work, row, "pid"), pid), number_of(work, row, "tokens"),
                 age_of(number_of(work, row, "age_ms"), age),
                 number_of(work, row, "keep_ms") ? "kept" : "", facts_of(work, row, facts));
        return screen_text(screen, line, strlen(line));
}

static int print_streams(struct screen *screen, const struct json_document *work)
{
        uint32_t row = json_first(work, json_member(work, 0, "streams"));
        int r = 0;

        for (; !r && row != JSON_NONE; row = json_next(work, row))
                r = print_row(screen, work, row, word_of(work, row, "kind"),
                              word_of(work, row, "state"));
        return r;
}

static int print_handles(struct screen *screen, const struct json_document *work)
{
        uint32_t row = json_first(work, json_member(work, 0, "handles"));
        bool busy = false;
        int r = 0;

        for (; !r && row != JSON_NONE; row = json_next(work, row)) {
                json_bool(work, json_member(work, row, "busy"), &busy);
                r = print_row(screen, work, row, "handle", busy ? "busy" : "idle");
        }
        return r;
}

static int print_tables(const struct json_document *work)
{
        struct screen screen;
        char line[128];
        int r;

        snprintf(line, sizeof(line), "%-20s %-9s %-8s %-12s %8s %9s %7s\n", "number", "kind",
                 "state", "user", "process", "tokens", "age");
        screen_open(&screen, STDOUT_FILENO);
        r = screen_text(&screen, line, strlen(line));
        if (!r)
                r = print_streams(&screen, work);
        if (!r)
                r = print_handles(&screen, work);
        return r ? r : screen_close(&screen);
}

/* ---- JSON ---- */

static bool names_something(const char *key)
{
        return !strcmp(key, "number") || !strcmp(key, "handle");
}

static void write_value(struct json_writer *json, const struct json_document *work, uint32_t node,
                        const char *key)
{
        const char *text = json_string(work, node, NULL), *digits = json_number(work, node);
        bool on = false;

        if (text)
                json_write_text(json, text, strlen(text));
        else if (digits && names_something(key))
                json_write_text(json, digits, strlen(digits));
        else if (digits)
                json_write_raw(json, digits);
        else
                json_write_raw(json, json_bool(work, node, &on) && on ? "true" : "false");
}

static void write_row(struct json_writer *json, const struct json_document *work, uint32_t row)
{
        const char *between = "{";

        for (uint32_t at = json_first(work, row); at != JSON_NONE; at = json_next(work, at)) {
                const char *key = json_key(work, at, NULL);

                json_write_raw(json, between);
                json_write_text(json, key, strlen(key));
                json_write_raw(json, ":");
                write_value(json, work, at, key);
                between = ",";
        }
        json_write_raw(json, "}");
}

static void write_rows(struct json_writer *json, const struct json_document *work, const char *name)
{
        uint32_t row = json_first(work, json_member(work, 0, name));
        const char *between = "";

        for (; row != JSON_NONE; row = json_next(work, row)) {
                json_write_raw(json, between);
                write_row(json, work, row);
                between = ",";
        }
}

static int print_json(const struct json_document *work)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        json_write_raw(&json, "{\"streams\":[");
        write_rows(&json, work, "streams");
        json_write_raw(&json, "],\"handles\":[");
        write_rows(&json, work, "handles");
        json_write_raw(&json, "]}\n");
        r = json_write_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(out.at, out.count);
        bytes_deinit(&out);
        return r;
}

/* ---- commands ---- */

int cli_ps(struct cli *cli)
{
        struct json_document *work;
        const char *json;
        int r;

        r = smv_list(cli->client, &json);
        if (r)
                return say_failed(cli, r);
        r = reply_parse(json, "the list", &work);
        if (r)
                return r;
        r = cli->json ? print_json(work) : print_tables(work);
        json_free(work);
        return r;
}

int cli_cancel(struct cli *cli)
{
        int r = smv_end(cli->client, cli->number);

        return r ? say_failed(cli, r) : CLI_GOOD;
}
