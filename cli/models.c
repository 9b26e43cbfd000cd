/*
 * models: lists what the daemon serves, as its status says, and what is in the folder of models.  A
 * daemon serves one model; without a daemon, only the folder is listed.  --names is for completion.
 */
#include "cli/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/progress.h"
#include "json/builder.h"
#include "store/incoming.h"

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

/* The models of the folder, and what pulls that did not end have left. */
struct folder {
        struct store store;
        struct store_list list;
};

static int read_folder(struct folder *folder)
{
        *folder = (struct folder){ 0 };
        if (store_open(&folder->store) || !store_list(&folder->store, &folder->list))
                return 0;
        say("out of memory");
        return CLI_FAILED;
}

static void put_stored(struct json_writer *json, const struct store_model *model)
{
        struct json_builder builder = { .out = *json };

        json_put_object(&builder);
        json_put_key_word(&builder, "name", model->name);
        json_put_key_word(&builder, "path", model->path);
        json_put_key_uint(&builder, "bytes", model->bytes);
        json_put_key(&builder, "modified_s");
        json_put_int(&builder, model->modified_s);
        json_put_key_bool(&builder, "complete", true);
        if (model->pulled)
                manifest_put(&builder, &model->manifest);
        json_put_object_end(&builder);
        *json = builder.out;
}

static void put_unfinished(struct json_writer *json, const struct store *store, bool comma)
{
        char name[STORE_NAME_BYTES + 1], why[STORE_REFUSAL_BYTES];
        uint64_t bytes;

        for (size_t i = 0; store->place_count && incoming_name(store, i, name); i++) {
                if (incoming_bytes(store, name, &bytes))
                        continue;
                json_write_raw(json, comma ? "," : "");
                put_text(json, "{\"name\":", name);
                put_number(json, ",\"bytes\":", bytes);
                json_write_raw(json, ",\"complete\":false");
                if (incoming_refused(store, name, why))
                        put_text(json, ",\"refused\":", why);
                json_write_raw(json, "}");
                comma = true;
        }
}

static void put_folder(struct json_writer *json, const struct folder *folder)
{
        json_write_raw(json, ",\"folder\":[");
        for (size_t i = 0; i < folder->list.count; i++) {
                json_write_raw(json, i ? "," : "");
                put_stored(json, &folder->list.models[i]);
        }
        put_unfinished(json, &folder->store, folder->list.count);
        json_write_raw(json, "]");
}

static void put_model(struct json_writer *json, const struct model *model)
{
        put_text(json, "{\"name\":", model->name);
        json_write_raw(json, ",\"default\":true");
        put_number(json, ",\"context\":", model->context);
        put_number(json, ",\"vocab\":", model->vocab);
        json_write_raw(json, model->chat ? ",\"chat\":true" : ",\"chat\":false");
        put_text(json, ",\"quantisation\":", model->quantisation);
        put_number(json, ",\"bytes\":", model->bytes);
        put_text(json, ",\"architecture\":", model->architecture);
        put_number(json, ",\"parameters\":", model->parameters);
        put_number(json, ",\"trained_context\":", model->trained_context);
        put_text(json, ",\"digest\":", model->digest);
        put_number(json, ",\"modified_s\":", model->modified_s);
        put_text(json, ",\"tool_dialect\":", model->tool_dialect);
        json_write_raw(json, "}");
}

/* `status` is NULL without a daemon. */
static int print_json(const struct json_document *status, const struct model *model,
                      const struct folder *folder)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        json_write_raw(&json, "{\"models\":[");
        if (status)
                put_model(&json, model);
        json_write_raw(&json, status ? "],\"daemon\":" : "],\"daemon\":null");
        if (status)
                put_daemon(&json, status);
        put_folder(&json, folder);
        json_write_raw(&json, "}\n");
        r = json_write_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(out.at, out.count);
        bytes_deinit(&out);
        return r;
}

static int print_served(const struct json_document *status, const struct model *model)
{
        struct reply_daemon daemon = reply_daemon(status);
        char text[2048], owner[REPLY_OWNER_BYTES];
        struct screen screen;

        snprintf(text, sizeof(text),
                 "%s%s%s\n%-24s %-8s %10s %8s %10s  %-4s  %s\n"
                 "%-24s %-8s %6.1f MiB %8" PRIu64 " %10" PRIu64 "  %-4s  yes\n",
                 daemon.socket ? daemon.socket : "", daemon.socket ? ": " : "",
                 reply_owner(&daemon, owner), "name", "type", "size", "context", "vocabulary",
                 "chat", "default", model->name, model->quantisation,
                 (double)model->bytes / 1048576, model->context, model->vocab,
                 model->chat ? "yes" : "no");
        screen_open(&screen, STDOUT_FILENO);
        return screen_text(&screen, text, strlen(text));
}

static int print_line(struct screen *screen, const char *name, uint64_t bytes, const char *about)
{
        char line[4096], size[AMOUNT_BYTES];

        snprintf(line, sizeof(line), "%-32s %10s  %s\n", name, amount_bytes((double)bytes, size),
                 about);
        return screen_text(screen, line, strlen(line));
}

/* A pull that has not come to its end. */
static int print_incoming(const struct store *store, struct screen *screen, const char *name,
                          uint64_t bytes)
{
        char about[STORE_REFUSAL_BYTES + 64], why[STORE_REFUSAL_BYTES];

        snprintf(about, sizeof(about), "not complete: the same pull continues, rm removes it");
        if (incoming_refused(store, name, why))
                snprintf(about, sizeof(about), "%s; pull --force keeps it, rm removes it", why);
        return print_line(screen, name, bytes, about);
}

/* `served`: a table stands above it. */
static int print_folder(const struct folder *folder, bool served)
{
        const struct store *store = &folder->store;
        char name[STORE_NAME_BYTES + 1], place[STORE_PATH_BYTES + 8];
        struct screen screen;
        unsigned last = STORE_PLACES_MAX;
        uint64_t bytes;
        int r = 0;

        screen_open(&screen, STDOUT_FILENO);
        for (unsigned at = 0; at < store->place_count && !r; at++) {
                for (size_t i = 0; i < folder->list.count && !r; i++) {
                        const struct store_model *model = &folder->list.models[i];

                        if (model->place != at)
                                continue;
                        snprintf(place, sizeof(place), "%s%s:\n", served || last < at ? "\n" : "",
                                 store->places[at]);
                        if (last != at)
                                r = screen_text(&screen, place, strlen(place));
                        last = at;
                        if (!r)
                                r = print_line(&screen, model->name, model->bytes,
                                               model->pulled ? model->manifest.source : "");
                }
        }
        for (size_t i = 0; store->place_count && !r && incoming_name(store, i, name); i++)
                if (!incoming_bytes(store, name, &bytes))
                        r = print_incoming(store, &screen, name, bytes);
        return r;
}

static int print_names(const struct folder *folder)
{
        int r = 0;

        for (size_t i = 0; i < folder->list.count && !r; i++) {
                char line[STORE_NAME_BYTES + 2];
                int n = snprintf(line, sizeof(line), "%s\n", folder->list.models[i].name);

                r = screen_raw(line, (size_t)n);
        }
        return r;
}

/* The status, or NULL if there is no daemon. */
static int ask_status(struct cli *cli, struct json_document **ret_status)
{
        struct bytes json = { 0 };
        int r;

        *ret_status = NULL;
        if (!cli->client)
                return 0;
        r = reply_status(cli, &json);
        if (!r)
                r = reply_parse(json.at, "the status", ret_status);
        bytes_deinit(&json);
        return r;
}

int cli_model_names(void)
{
        struct folder folder;
        int r = read_folder(&folder);

        if (!r)
                r = print_names(&folder);
        store_list_deinit(&folder.list);
        return r;
}

int cli_models(struct cli *cli)
{
        struct json_document *status;
        struct model model = { 0 };
        struct folder folder;
        int r = ask_status(cli, &status);

        if (r)
                return r;
        if (status)
                model = read_model(status);
        r = read_folder(&folder);
        if (!r && cli->json) {
                r = print_json(status, &model, &folder);
        } else if (!r) {
                r = status ? print_served(status, &model) : 0;
                if (!status)
                        say("no daemon is there; samovard, or ask --model NAME, serves a model");
                if (!r)
                        r = print_folder(&folder, status);
        }
        if (!r && !status && !folder.list.count)
                r = CLI_NO_DAEMON;
        store_list_deinit(&folder.list);
        json_free(status);
        return r;
}
