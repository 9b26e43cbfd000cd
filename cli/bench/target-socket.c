/* Our daemon at its socket: requests over one connection or several, answers by their rings. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/target.h"
#include "json/reader.h"

#define CONNECTIONS_MAX 64u
#define RING_BYTES      (1u << 20)
#define NODES_MAX       1000000u

struct flight { /* a stream that runs */
        uint32_t stream;
        struct sample *sample;
};

struct link {
        struct smv_client *client;
        bool own;
        struct flight *flights;
        uint32_t count, size;
};

struct socket_target {
        struct target target; /* the first member */
        struct link links[CONNECTIONS_MAX];
        uint32_t link_count, next;
        uint32_t *ids;
};

static struct socket_target *of(struct target *target)
{
        return (struct socket_target *)target;
}

static struct flight *find(struct link *link, uint32_t stream)
{
        for (uint32_t i = 0; i < link->count; i++)
                if (link->flights[i].stream == stream)
                        return &link->flights[i];
        return NULL;
}

static int add(struct link *link, uint32_t stream, struct sample *sample)
{
        if (link->count == link->size) {
                uint32_t size = link->size ? 2 * link->size : 64;
                struct flight *more = realloc(link->flights, size * sizeof(*more));

                if (!more)
                        return -ENOMEM;
                link->flights = more;
                link->size = size;
        }
        link->flights[link->count++] = (struct flight){ .stream = stream, .sample = sample };
        return 0;
}

static void end(struct target *target, struct link *link, struct flight *flight, const char *error)
{
        struct sample *sample = flight->sample;

        *flight = link->flights[--link->count];
        target_end(target, sample, error);
}

/* The words of the client's last failure. */
static const char *failure(struct target *target, struct smv_client *client)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(client, &problem);
        snprintf(target->why, sizeof(target->why), "%s", problem.message);
        return *problem.name ? problem.name : "refused";
}

static int send_request(struct target *target, const struct prompt *prompt, struct sample *sample)
{
        struct socket_target *t = of(target);
        struct link *link = &t->links[t->next++ % t->link_count];
        const struct smv_generate options = {
                SMV_SIZE(smv_generate),
                .model = target->model,
                .tokens = prompt->ids,
                .token_count = prompt->id_count,
                .prompt = prompt->text,
                .messages = prompt->messages,
                .message_count = prompt->message_count,
                .max_tokens = prompt->output,
                .ignore_eos = prompt->ignore_eos,
                .set = target->set | SMV_SET_SEED,
                .seed = sample->number,
                .temperature = target->temperature,
                .priority = target->priority,
        };
        uint32_t stream;
        int r = smv_ask_generate(link->client, &options, &stream);

        if (r) {
                target_end(target, sample,
                           r == -EREMOTEIO ? failure(target, link->client)
                           : r == -EBUSY   ? "busy"
                                           : "lost");
                target->gone = target->gone || r == -ENOTCONN;
                return r == -ENOMEM ? r : 0;
        }
        return add(link, stream, sample);
}

static void take_end(struct target *target, struct link *link, struct flight *flight,
                     const struct smv_event *event)
{
        struct sample *sample = flight->sample;

        sample->has_usage = true;
        sample->input = event->prompt_tokens;
        sample->cached = event->cached_tokens;
        sample->output = event->output_tokens;
        sample->drafted = event->drafted;
        sample->drafts_right = event->drafts_right;
        if (event->reason == SMV_END_LENGTH || event->reason == SMV_END_STOP ||
            event->reason == SMV_END_EOS) {
                end(target, link, flight, "");
                return;
        }
        snprintf(target->why, sizeof(target->why), "%s",
                 event->reason == SMV_END_ERROR ? smv_code_text(event->code)
                                                : smv_reason_name(event->reason));
        end(target, link, flight,
            event->reason == SMV_END_ERROR ? smv_code_name(event->code)
                                           : smv_reason_name(event->reason));
}

static int take(struct target *target, struct link *link, const struct smv_event *event)
{
        struct flight *flight = find(link, event->stream);

        if (!flight)
                return 0;
        switch (event->kind) {
        case SMV_EVENT_TOKENS:
                return event->token_count ? sample_piece(flight->sample, target_now(target)) : 0;
        case SMV_EVENT_END:
                take_end(target, link, flight, event);
                return 0;
        case SMV_EVENT_REPLY:
                if (event->code != SMV_OK)
                        end(target, link, flight, failure(target, link->client));
                return 0;
        default:
                return 0;
        }
}

/* All that has come on a connection. */
static int take_all(struct target *target, struct link *link)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r;

        while ((r = smv_next(link->client, &event, 0)) > 0) {
                r = take(target, link, &event);
                if (r)
                        return r;
        }
        target->gone = target->gone || r == -ENOTCONN;
        return 0;
}

static int wait_for(struct target *target, double seconds)
{
        struct socket_target *t = of(target);
        struct pollfd fds[CONNECTIONS_MAX];
        struct timespec time;
        int r = 0;

        seconds = seconds > 0 ? seconds : 0;
        time.tv_sec = (time_t)seconds;
        time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
        for (uint32_t i = 0; i < t->link_count; i++)
                fds[i] = (struct pollfd){
                        .fd = smv_fd(t->links[i].client),
                        .events = smv_wants_write(t->links[i].client) ? POLLIN | POLLOUT : POLLIN,
                };
        ppoll(fds, t->link_count, &time, NULL);
        for (uint32_t i = 0; i < t->link_count && !r; i++)
                r = take_all(target, &t->links[i]);
        return r;
}

static void cancel(struct target *target)
{
        struct socket_target *t = of(target);

        for (uint32_t i = 0; i < t->link_count; i++)
                while (t->links[i].count) {
                        struct flight *flight = &t->links[i].flights[t->links[i].count - 1];

                        smv_cancel(t->links[i].client, flight->stream);
                        end(target, &t->links[i], flight, "cancelled");
                }
}

static void close_target(struct target *target)
{
        struct socket_target *t = of(target);

        for (uint32_t i = 0; i < t->link_count; i++) {
                if (t->links[i].own)
                        smv_close(t->links[i].client);
                free(t->links[i].flights);
        }
        free(t->ids);
        free(t);
}

/* ---- opening ---- */

static const struct target_kind kind = {
        .send = send_request,
        .wait = wait_for,
        .cancel = cancel,
        .close = close_target,
};

static void copy_text(const struct json_document *json, uint32_t object, const char *key, char *to,
                      size_t bytes)
{
        const char *text = json_string(json, json_member(json, object, key), NULL);

        snprintf(to, bytes, "%s", text ? text : "");
}

/* Version and backend, which the daemon tells in its status. */
static int read_status(struct smv_client *client, struct target_facts *facts)
{
        struct json_document *json;
        const char *text;
        char why[128], version[64];
        int r = smv_status(client, &text);

        if (!r)
                r = json_parse(text, strlen(text), NODES_MAX, &json, why, sizeof(why));
        if (r)
                return r;
        copy_text(json, 0, "version", version, sizeof(version));
        snprintf(facts->server, sizeof(facts->server), "samovard %s", version);
        copy_text(json, json_member(json, 0, "model"), "backend", facts->backend,
                  sizeof(facts->backend));
        json_free(json);
        return 0;
}

static int read_facts(struct socket_target *t, struct smv_client *client)
{
        struct target_facts *facts = &t->target.facts;
        struct smv_model model = { SMV_SIZE(smv_model) };
        const char *path = smv_socket_used(client);
        int r = 0;

        snprintf(facts->address, sizeof(facts->address), "%s", path ? path : "private");
        for (size_t i = 0; !r; i++) {
                r = smv_model(client, i, &model);
                if (r ||
                    (t->target.model ? !strcmp(model.name, t->target.model) : model.is_default))
                        break;
        }
        if (r)
                return r;
        snprintf(facts->model, sizeof(facts->model), "%s", model.name);
        snprintf(facts->quantisation, sizeof(facts->quantisation), "%s", model.quantisation);
        snprintf(facts->digest, sizeof(facts->digest), "%s", model.digest);
        facts->parameters = model.parameters;
        facts->context = model.context;
        facts->vocab = model.vocab;
        return read_status(client, facts);
}

/* The tokens that are text: prompts that are made up have no others. */
static int read_ids(struct socket_target *t, struct smv_client *client)
{
        const struct smv_piece *pieces;
        size_t count = 0, vocab = 1;
        int r = 0;

        t->ids = calloc(t->target.facts.vocab, sizeof(*t->ids));
        if (!t->ids)
                return -ENOMEM;
        for (uint32_t from = 0; from < vocab && !r; from += (uint32_t)count) {
                r = smv_vocabulary(client, t->target.model, from, 0, &pieces, &count, &vocab);
                for (size_t i = 0; !r && i < count && from + i < t->target.facts.vocab; i++)
                        if (pieces[i].kind == SMV_PIECE_TEXT && pieces[i].count)
                                t->ids[t->target.encoding.id_count++] = from + (uint32_t)i;
        }
        t->target.encoding.ids = t->ids;
        return r ? r : t->target.encoding.id_count ? 0 : -ENODATA;
}

static int connect_link(const struct target_options *options, const char *path, struct link *link,
                        char *why, size_t why_bytes)
{
        const struct smv_connect connect = {
                SMV_SIZE(smv_connect),
                .socket = path,
                .any_uid = options->any_uid,
                .principal = options->principal,
                .transport = options->transport,
                .ring_bytes = RING_BYTES,
                .timeout_ms = (int)options->timeout_s * 1000,
                .message = why,
                .message_bytes = why_bytes,
        };
        int r = smv_connect(&connect, &link->client);

        link->own = !r;
        if (r && !*why)
                snprintf(why, why_bytes, "%s", strerror(-r));
        return r;
}

static int open_links(struct socket_target *t, const struct target_options *options,
                      struct smv_client *client, const char *path, char *why, size_t why_bytes)
{
        uint32_t wanted = options->bench->connections ? options->bench->connections : 1;
        int r = 0;

        *why = '\0';
        if (client) {
                t->links[t->link_count++].client = client;
                path = smv_socket_used(client);
        }
        if (client && !path && wanted > 1) {
                snprintf(why, why_bytes, "--connections is %u; a private daemon has one connection",
                         wanted);
                return -EINVAL;
        }
        while (t->link_count < wanted && !r) {
                r = connect_link(options, path, &t->links[t->link_count], why, why_bytes);
                t->link_count += !r;
        }
        return r;
}

int target_open_socket(const struct target_options *options, struct smv_client *client,
                       const char *socket, struct target **ret_target, char *why, size_t why_bytes)
{
        struct socket_target *t = calloc(1, sizeof(*t));
        int r;

        if (!t) {
                snprintf(why, why_bytes, "out of memory");
                return -ENOMEM;
        }
        t->target.kind = &kind;
        t->target.model = options->model;
        t->target.set = options->set;
        t->target.temperature = options->temperature;
        t->target.priority = options->priority;
        r = open_links(t, options, client, socket, why, why_bytes);
        if (!r) {
                r = read_facts(t, t->links[0].client);
                if (!r && options->made_up)
                        r = read_ids(t, t->links[0].client);
                if (r == -ENOENT)
                        snprintf(why, why_bytes,
                                 "the daemon serves no model %s; samovar models lists "
                                 "what there is",
                                 options->model);
                else if (r)
                        snprintf(why, why_bytes, "it does not say what it serves: %s",
                                 strerror(-r));
        }
        if (r) {
                close_target(&t->target);
                return r;
        }
        *ret_target = &t->target;
        return 0;
}
