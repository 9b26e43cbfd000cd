/* tokenize, detokenize, and template with a daemon. */
#include "cli/cli.h"

#include <unistd.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/utf8.h"
#include "json/writer.h"

/* Writes the JSON to stdout, and frees it. */
static int write_out(struct json_writer *json)
{
        int r = json_write_end(json);

        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(json->to->at, json->to->count);
        bytes_deinit(json->to);
        return r;
}

static int write_ids(const struct cli *cli, const uint32_t *ids, size_t count)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };

        json_write_raw(&json, cli->json ? "{\"tokens\":[" : "");
        for (size_t i = 0; i < count; i++) {
                json_write_raw(&json, !i ? "" : cli->json ? "," : " ");
                json_write_uint(&json, ids[i]);
        }
        json_write_raw(&json, cli->json ? "]}\n" : "\n");
        return write_out(&json);
}

/* Whole characters as JSON has them; if there is a part of one, all bytes are shown as \xNN. */
static void put_bytes(struct json_writer *json, const struct smv_piece *piece)
{
        char escape[8];

        if (utf8_valid(piece->bytes, piece->count) == piece->count) {
                json_write_text(json, piece->bytes, piece->count);
                return;
        }
        json_write_raw(json, "\"");
        for (uint32_t i = 0; i < piece->count; i++) {
                snprintf(escape, sizeof(escape), "\\x%02x", (uint8_t)piece->bytes[i]);
                json_write_raw(json, escape);
        }
        json_write_raw(json, "\"");
}

static void put_line(struct json_writer *json, uint32_t id, const struct smv_piece *piece)
{
        json_write_uint(json, id);
        json_write_raw(json, " ");
        json_write_raw(json, smv_piece_kind_name(piece->kind));
        json_write_raw(json, " ");
        put_bytes(json, piece);
        json_write_raw(json, "\n");
}

/* The text in JSON cannot have part of a character, so the bytes stand beside it. */
static void put_object(struct json_writer *json, uint32_t id, const struct smv_piece *piece)
{
        json_write_raw(json, "{\"id\":");
        json_write_uint(json, id);
        json_write_raw(json, ",\"kind\":\"");
        json_write_raw(json, smv_piece_kind_name(piece->kind));
        json_write_raw(json, "\",\"text\":");
        json_write_text(json, piece->bytes, piece->count);
        json_write_raw(json, ",\"bytes\":[");
        for (uint32_t i = 0; i < piece->count; i++) {
                json_write_raw(json, i ? "," : "");
                json_write_uint(json, (uint8_t)piece->bytes[i]);
        }
        json_write_raw(json, "]}");
}

static int write_pieces(struct cli *cli, const uint32_t *ids, size_t count)
{
        const struct smv_piece *pieces = NULL;
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r = count ? smv_pieces(cli->client, cli->model, ids, count, &pieces) : 0;

        if (r)
                return say_failed(cli, r);
        json_write_raw(&json, cli->json ? "{\"pieces\":[" : "");
        for (size_t i = 0; i < count; i++) {
                json_write_raw(&json, i && cli->json ? "," : "");
                (cli->json ? put_object : put_line)(&json, ids[i], &pieces[i]);
        }
        json_write_raw(&json, cli->json ? "]}\n" : "");
        return write_out(&json);
}

/* The ids of an answer last until the next call on the client. */
static int write_pieces_of_answer(struct cli *cli, const uint32_t *ids, size_t count)
{
        struct bytes copy = { 0 };
        int r;

        if (bytes_add(&copy, ids, count * sizeof(*ids))) {
                say("out of memory");
                return CLI_FAILED;
        }
        r = write_pieces(cli, (const uint32_t *)(const void *)copy.at, count);
        bytes_deinit(&copy);
        return r;
}

int cli_tokenize(struct cli *cli)
{
        const uint32_t *ids;
        size_t count;
        int r;

        r = smv_tokenize(cli->client, cli->model, cli->input.at, cli->input.count, &ids, &count);
        if (r)
                return say_failed(cli, r);
        return cli->pieces ? write_pieces_of_answer(cli, ids, count) : write_ids(cli, ids, count);
}

static int write_text(const struct cli *cli, const char *text, size_t bytes)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        struct screen screen;
        int r;

        if (!cli->json) {
                screen_open(&screen, STDOUT_FILENO);
                r = screen_text(&screen, text, bytes);
                return r ? r : screen_close(&screen);
        }
        json_write_raw(&json, "{\"text\":");
        json_write_text(&json, text, bytes);
        json_write_raw(&json, "}\n");
        return write_out(&json);
}

int cli_template(struct cli *cli)
{
        const uint32_t *ids = NULL;
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        size_t bytes, count = 0;
        const char *text;
        int r;

        cli->generate.model = cli->model;
        r = smv_template(cli->client, &cli->generate, &text, &bytes, cli->json ? &ids : NULL,
                         &count);
        if (r)
                return say_failed(cli, r);
        if (!cli->json)
                return write_text(cli, text, bytes);
        json_write_raw(&json, "{\"text\":");
        json_write_text(&json, text, bytes);
        json_write_raw(&json, ",\"tokens\":[");
        for (size_t i = 0; i < count; i++) {
                json_write_raw(&json, i ? "," : "");
                json_write_uint(&json, ids[i]);
        }
        json_write_raw(&json, "]}\n");
        return write_out(&json);
}

static int read_ids(const char *text, struct bytes *ids)
{
        unsigned long long value;
        uint32_t id;
        char *end;

        for (;;) {
                text += strspn(text, " \t\r\n,");
                if (!*text)
                        return 0;
                errno = 0;
                value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT64_MAX;
                if (value > UINT32_MAX || errno || (*end && !strchr(" \t\r\n,", *end))) {
                        say("the token id %.*s is not a whole number up to %u",
                            (int)strcspn(text, " \t\r\n,"), text, UINT32_MAX);
                        return CLI_USAGE;
                }
                text = end;
                id = (uint32_t)value;
                if (bytes_add(ids, &id, sizeof(id))) {
                        say("out of memory");
                        return CLI_FAILED;
                }
        }
}

int cli_detokenize(struct cli *cli)
{
        struct bytes ids = { 0 };
        const char *text;
        size_t bytes;
        int r;

        r = read_ids(cli->input.at, &ids);
        if (!r && cli->pieces) {
                r = write_pieces(cli, (const uint32_t *)(const void *)ids.at,
                                 ids.count / sizeof(uint32_t));
        } else if (!r) {
                r = smv_detokenize(cli->client, cli->model, (const uint32_t *)(const void *)ids.at,
                                   ids.count / sizeof(uint32_t), &text, &bytes);
                r = r ? say_failed(cli, r) : write_text(cli, text, bytes);
        }
        bytes_deinit(&ids);
        return r;
}
