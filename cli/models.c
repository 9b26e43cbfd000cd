/* models: lists what the daemon serves, as its status says.  A daemon serves one model. */
#include "cli/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/writer.h"

struct model {
        const char *name, *quantisation, *architecture, *digest, *tool_dialect;
        uint64_t bytes, context, vocab, parameters, trained_context, modified_s;
        bool chat;
};

/* A daemon of an older version leaves some out. */
static const char *text_of(const struct json_document *status, uint32_t map, const char *name)
{
        const char *text = json_string(status, json_member(status, map, name), NULL);

        return text ? text : "?";
}

/* The texts belong to the document. */
static struct model read_model(const struct json_document *status)
{
        uint32_t map = json_member(status, 0, "model");
        struct model model = { .name = text_of(status, map, "name"),
                               .quantisation = text_of(status, map, "quantisation"),
                               .architecture = text_of(status, map, "architecture"),
                               .digest = text_of(status, map, "digest"),
                               .tool_dialect = text_of(status, map, "tool_dialect") };

        json_whole(status, json_member(status, map, "parameters"), &model.parameters);
        json_whole(status, json_member(status, map, "trained_context"), &model.trained_context);
        json_whole(status, json_member(status, map, "modified_s"), &model.modified_s);

        json_whole(status, json_member(status, map, "bytes"), &model.bytes);
        json_whole(status, json_member(status, map, "context"), &model.context);
        json_whole(status, json_member(status, map, "vocab"), &model.vocab);
        json_bool(status, json_member(status, map, "chat"), &model.chat);
        return model;
}

static void put_text(struct json_writer *json, const char *name, const char *text)
{
        json_write_raw(json, name);
        json_write_text(json, text, strlen(text));
}

static void put_number(struct json_writer *json, const char *name, uint64_t value)
{
        json_write_raw(json, name);
        json_write_uint(json, value);
}

/* The keys are those of the status. */
static void put_daemon(struct json_writer *json, const struct json_document *status)
{
        struct reply_daemon daemon = reply_daemon(status);

        json_write_raw(json, "{");
        if (daemon.socket) {
                put_text(json, "\"socket\":", daemon.socket);
                json_write_raw(json, ",");
        }
        put_number(json, "\"pid\":", daemon.pid);
        put_number(json, ",\"uid\":", daemon.uid);
        json_write_raw(json, "}");
}

static int print_json(const struct json_document *status, const struct model *model)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        put_text(&json, "{\"models\":[{\"name\":", model->name);
        json_write_raw(&json, ",\"default\":true");
        put_number(&json, ",\"context\":", model->context);
        put_number(&json, ",\"vocab\":", model->vocab);
        json_write_raw(&json, model->chat ? ",\"chat\":true" : ",\"chat\":false");
        put_text(&json, ",\"quantisation\":", model->quantisation);
        put_number(&json, ",\"bytes\":", model->bytes);
        put_text(&json, ",\"architecture\":", model->architecture);
        put_number(&json, ",\"parameters\":", model->parameters);
        put_number(&json, ",\"trained_context\":", model->trained_context);
        put_text(&json, ",\"digest\":", model->digest);
        put_number(&json, ",\"modified_s\":", model->modified_s);
        put_text(&json, ",\"tool_dialect\":", model->tool_dialect);
        json_write_raw(&json, "}],\"daemon\":");
        put_daemon(&json, status);
        json_write_raw(&json, "}\n");
        r = json_write_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(out.at, out.count);
        bytes_deinit(&out);
        return r;
}

static int print_table(const struct json_document *status, const struct model *model)
{
        struct reply_daemon daemon = reply_daemon(status);
        char text[2048], owner[REPLY_OWNER_BYTES];
        struct screen screen;
        int r;

        snprintf(text, sizeof(text),
                 "%s%s%s\n%-24s %-8s %10s %8s %10s  %-4s  %s\n"
                 "%-24s %-8s %6.1f MiB %8" PRIu64 " %10" PRIu64 "  %-4s  yes\n",
                 daemon.socket ? daemon.socket : "", daemon.socket ? ": " : "",
                 reply_owner(&daemon, owner), "name", "type", "size", "context", "vocabulary",
                 "chat", "default", model->name, model->quantisation,
                 (double)model->bytes / 1048576, model->context, model->vocab,
                 model->chat ? "yes" : "no");
        screen_open(&screen, STDOUT_FILENO);
        r = screen_text(&screen, text, strlen(text));
        return r ? r : screen_close(&screen);
}

int cli_models(struct cli *cli)
{
        struct json_document *status;
        struct bytes json = { 0 };
        struct model model;
        int r;

        r = reply_status(cli, &json);
        if (!r)
                r = reply_parse(json.at, "the status", &status);
        bytes_deinit(&json);
        if (r)
                return r;
        model = read_model(status);
        r = cli->json ? print_json(status, &model) : print_table(status, &model);
        json_free(status);
        return r;
}
