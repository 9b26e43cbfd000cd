#include "cli/bench/http-facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "json/reader.h"

#define NODES_MAX  1000000u
#define BODY_MAX   (16u << 20)
#define ROOT_BYTES 1024

struct asking {
        struct web *web;
        const char *authorization;
        uint32_t timeout_s;
};

struct look { /* one GET that is waited for */
        struct bytes body;
        char server[64], why[160];
        int status; /* 0: there was no answer */
        bool ended;
};

static bool on_head(void *arg, int status, const struct web_head *head)
{
        struct look *look = arg;
        const char *server = web_field(head, "Server");

        look->status = status;
        snprintf(look->server, sizeof(look->server), "%.63s", server ? server : "");
        return true;
}

static bool on_data(void *arg, const void *bytes, size_t count)
{
        struct look *look = arg;

        return look->body.count + count <= BODY_MAX && !bytes_add(&look->body, bytes, count);
}

static void on_end(void *arg, enum web_end end, const char *why)
{
        struct look *look = arg;

        look->ended = true;
        if (end != WEB_GOOD) {
                look->status = 0;
                snprintf(look->why, sizeof(look->why), "%s", why ? why : "its answer is too long");
        }
}

static int get(const struct asking *asking, const char *url, struct look *look)
{
        const struct web_field field = { "Authorization", asking->authorization };
        const struct web_ask ask = {
                .url = url,
                .fields = &field,
                .field_count = *asking->authorization ? 1 : 0,
                .connect_ms = asking->timeout_s * 1000,
                .stall_ms = asking->timeout_s * 1000,
                .on_head = on_head,
                .on_data = on_data,
                .on_end = on_end,
                .arg = look,
        };
        struct web_request *request;
        int r = web_begin(asking->web, &ask, &request);

        while (!r && !look->ended)
                r = web_wait(asking->web, -1, NULL, 0);
        return r;
}

static struct json_document *parse(const struct look *look, char *why, size_t why_bytes)
{
        struct json_document *json = NULL;

        if (json_parse(look->body.at ? look->body.at : "", look->body.count, NODES_MAX, &json, why,
                       why_bytes))
                return NULL;
        return json;
}

static void copy(const struct json_document *json, uint32_t object, const char *key, char *to,
                 size_t bytes)
{
        const char *text = json_string(json, json_member(json, object, key), NULL);

        if (text)
                snprintf(to, bytes, "%s", text);
}

/* Facts that several servers tell, and llama-server and ours in "meta". */
static void read_model(const struct json_document *json, uint32_t at, struct target_facts *facts)
{
        uint32_t meta = json_member(json, at, "meta");
        uint64_t number;

        copy(json, at, "id", facts->model, sizeof(facts->model));
        copy(json, meta, "quantization", facts->quantisation, sizeof(facts->quantisation));
        if (!*facts->quantisation)
                copy(json, meta, "ftype", facts->quantisation, sizeof(facts->quantisation));
        copy(json, meta, "digest", facts->digest, sizeof(facts->digest));
        if (!*facts->server)
                copy(json, at, "owned_by", facts->server, sizeof(facts->server));
        if (json_whole(json, json_member(json, meta, "n_vocab"), &number) && number < UINT32_MAX)
                facts->vocab = (uint32_t)number;
        json_whole(json, json_member(json, meta, "n_params"), &facts->parameters);
        if (!json_whole(json, json_member(json, meta, "n_ctx"), &facts->context) &&
            !json_whole(json, json_member(json, at, "max_model_len"), &facts->context))
                json_whole(json, json_member(json, meta, "n_ctx_train"), &facts->context);
}

/* The model of that name, or the first. */
static int read_models(const struct look *look, const char *model, struct target_facts *facts,
                       char *why, size_t why_bytes)
{
        char words[128];
        struct json_document *json = parse(look, words, sizeof(words));
        uint32_t at;

        if (!json) {
                snprintf(why, why_bytes, "its list of models is not JSON: %s", words);
                return -EBADMSG;
        }
        for (at = json_first(json, json_member(json, 0, "data")); at != JSON_NONE;
             at = json_next(json, at)) {
                const char *id = json_string(json, json_member(json, at, "id"), NULL);

                if (id && (!model || !strcmp(id, model)))
                        break;
        }
        if (at != JSON_NONE)
                read_model(json, at, facts);
        json_free(json);
        if (at != JSON_NONE)
                return 0;
        if (model)
                snprintf(why, why_bytes, "the server does not list the model %s at /models", model);
        else
                snprintf(why, why_bytes, "the server lists no model: name one with --model");
        return -ENODATA;
}

/* True for what stands before a server, or is the library that it was made with. */
static bool is_general(const char *name)
{
        static const char *const names[] = { "uvicorn", "hypercorn", "gunicorn",    "nginx",
                                             "Caddy",   "envoy",     "istio-envoy", "cloudflare" };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strncasecmp(name, names[i], strlen(names[i])))
                        return true;
        return false;
}

static const char *advice(int status, bool key)
{
        if (status == 401 || status == 403)
                return key ? ": it refuses the key of --key-file"
                           : ": give a key with --key-file, which goes to the first URL only";
        return status == 404 ? ": is the URL one like http://host:port/v1?" : "";
}

/* Appends the version to the server's name. */
static void read_version(const struct asking *asking, const char *root, struct target_facts *facts)
{
        static const char *const places[][2] = { { "/version", "version" },
                                                 { "/props", "build_info" } };
        char url[ROOT_BYTES], why[64], version[64] = "";
        size_t used = strlen(facts->server);

        for (size_t i = 0; i < 2 && !*version; i++) {
                struct look look = { .ended = false };
                struct json_document *json;

                if (web_join(root, places[i][0], url, sizeof(url)) && !get(asking, url, &look) &&
                    look.status == 200 && (json = parse(&look, why, sizeof(why)))) {
                        copy(json, 0, places[i][1], version, sizeof(version));
                        json_free(json);
                }
                bytes_deinit(&look.body);
        }
        if (*version)
                snprintf(facts->server + used, sizeof(facts->server) - used, "%s%s",
                         used ? " " : "", version);
}

int http_facts_read(struct web *web, const char *base, const char *authorization, const char *model,
                    uint32_t timeout_s, struct target_facts *facts, char *why, size_t why_bytes)
{
        const struct asking asking = { web, authorization, timeout_s };
        struct look look = { .ended = false };
        char url[ROOT_BYTES];
        int length, r;

        snprintf(facts->address, sizeof(facts->address), "%.255s", base);
        if (!web_join(base, "/models", url, sizeof(url))) {
                snprintf(why, why_bytes, "--url is %.80s; it must be like http://host:port/v1",
                         base);
                return -EINVAL;
        }
        r = get(&asking, url, &look);
        if (!is_general(look.server))
                snprintf(facts->server, sizeof(facts->server), "%s", look.server);
        if (!r && look.status == 200) {
                r = read_models(&look, model, facts, why, why_bytes);
                if (!*facts->server)
                        snprintf(facts->server, sizeof(facts->server), "%s", look.server);
        } else if (r || !look.status) {
                snprintf(why, why_bytes, "%.80s: %s; does a server run there?", base,
                         r ? strerror(-r) : look.why);
                r = -ECONNREFUSED;
        } else {
                snprintf(why, why_bytes, "%.160s answers with the status %d%s", url, look.status,
                         advice(look.status, *authorization));
                r = -EPROTO;
        }
        bytes_deinit(&look.body);
        length = (int)strlen(base);
        while (length && base[length - 1] == '/')
                length--;
        if (!r && length > 3 && !strncmp(base + length - 3, "/v1", 3)) {
                snprintf(url, sizeof(url), "%.*s/", length - 3, base);
                read_version(&asking, url, facts);
        }
        return r;
}
