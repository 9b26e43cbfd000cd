/*
 * ps: lists the streams and handles that are under way.  cancel: ends one of them.
 *
 * A number has 64 bits, and many readers of JSON keep only 53 of them.  So --json prints numbers
 * that name something as texts.
 */
#include "cli/amounts.h"
#include "cli/reply.h"
#include "cli/work-reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/writer.h"

/* ---- tables ---- */

static const char *pid_of(uint64_t pid, char to[16])
{
        snprintf(to, 16, "%" PRIu64, pid);
        return pid ? to : "-";
}

static int print_row(struct screen *screen, const struct json_document *work, uint32_t row,
                     const char *kind, const char *state)
{
        const char *principal = json_string(work, json_member(work, row, "principal"), NULL);
        char line[512], user[USER_NAME_BYTES], age[AMOUNT_BYTES], pid[16], facts[WORK_FACTS_BYTES];

        work_facts(work, row, facts);
        snprintf(line, sizeof(line), "%-20" PRIu64 " %-9s %-8s %-12s %8s %9" PRIu64 " %7s %s%s%s\n",
                 work_number(work, row, "number"), kind, state,
                 user_name(work_number(work, row, "uid"), principal, user),
                 pid_of(work_number(work, row, "pid"), pid), work_number(work, row, "tokens"),
                 amount_age(work_number(work, row, "age_ms"), age),
                 work_number(work, row, "keep_ms") ? "kept" : "", *facts ? " " : "", facts);
        return screen_text(screen, line, strlen(line));
}

static int print_streams(struct screen *screen, const struct json_document *work)
{
        uint32_t row = json_first(work, json_member(work, 0, "streams"));
        int r = 0;

        for (; !r && row != JSON_NONE; row = json_next(work, row))
                r = print_row(screen, work, row, work_word(work, row, "kind"),
                              work_word(work, row, "state"));
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
