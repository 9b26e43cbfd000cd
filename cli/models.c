/* models: lists what the daemon serves, as its status says.  A daemon serves one model. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "json/reader.h"
#include "json/writer.h"

#define VALUES_MAX (1u << 20)

struct model {
        const char *name, *quantisation;
        uint64_t bytes, context, vocab;
        bool chat;
};

/* The texts belong to the document. */
static struct model read_model(const struct json_document *status)
{
        uint32_t map = json_member(status, 0, "model");
        const char *name = json_string(status, json_member(status, map, "name"), NULL);
        const char *type = json_string(status, json_member(status, map, "quantisation"), NULL);
        struct model model = { .name = name ? name : "?", .quantisation = type ? type : "?" };

        json_whole(status, json_member(status, map, "bytes"), &model.bytes);
        json_whole(status, json_member(status, map, "context"), &model.context);
        json_whole(status, json_member(status, map, "vocab"), &model.vocab);
        json_bool(status, json_member(status, map, "chat"), &model.chat);
        return model;
}

static void put_number(struct json_writer *json, const char *name, uint64_t value)
{
        json_write_raw(json, name);
        json_write_uint(json, value);
}

static int print_json(const struct model *model)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        json_write_raw(&json, "{\"models\":[{\"name\":");
        json_write_text(&json, model->name, strlen(model->name));
        json_write_raw(&json, ",\"default\":true");
        put_number(&json, ",\"context\":", model->context);
        put_number(&json, ",\"vocab\":", model->vocab);
        json_write_raw(&json, model->chat ? ",\"chat\":true" : ",\"chat\":false");
        json_write_raw(&json, ",\"quantisation\":");
        json_write_text(&json, model->quantisation, strlen(model->quantisation));
        put_number(&json, ",\"bytes\":", model->bytes);
        json_write_raw(&json, "}]}\n");
        r = json_write_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(out.at, out.count);
        bytes_deinit(&out);
        return r;
}

static int print_table(const struct model *model)
{
        struct screen screen;
        char text[512];
        int r;

        snprintf(text, sizeof(text),
                 "%-24s %-8s %10s %8s %10s  %-4s  %s\n%-24s %-8s %6.1f MiB %8llu %10llu  %-4s  "
                 "yes\n",
                 "name", "type", "size", "context", "vocabulary", "chat", "default", model->name,
                 model->quantisation, (double)model->bytes / 1048576,
                 (unsigned long long)model->context, (unsigned long long)model->vocab,
                 model->chat ? "yes" : "no");
        screen_open(&screen);
        r = screen_text(&screen, text, strlen(text));
        return r ? r : screen_close(&screen);
}

int cli_models(struct cli *cli)
{
        struct json_document *status;
        struct model model;
        const char *json;
        char why[128];
        int r;

        r = smv_status(cli->client, &json);
        if (r)
                return say_failed(cli, r);
        if (json_parse(json, strlen(json), VALUES_MAX, &status, why, sizeof(why))) {
                say("cannot read the status: %s", why);
                return CLI_FAILED;
        }
        model = read_model(status);
        r = cli->json ? print_json(&model) : print_table(&model);
        json_free(status);
        return r;
}
