#include "bridge/core/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/context.h"
#include "bridge/core/dialer.h"

#define BUCKETS       256u
#define EVENTS_A_TURN 512u /* so that other handlers of the loop run between them */
#define WAIT_MS_MIN   100u
#define WAIT_MS_MAX   5000u
#define NS_PER_MS     UINT64_C(1000000)

struct link {
        struct links *links;
        char *principal;           /* NULL: none */
        struct smv_client *client; /* NULL: none */
        uint64_t generation;
        struct loop_watch *watch;
        struct loop_timer *again; /* more events are there, or the next dial is due */
        struct dial dial;
        bool dialing;
        bool wanted; /* a call has asked for it, so it dials again by itself */
        uint32_t wait_ms;
        char why[256];
        struct list_head waiters;
        struct list_head buckets[BUCKETS]; /* of struct link_stream, by id */
};

struct links {
        const struct bridge_conf *conf;
        struct dialer *dialer;
        struct link **at; /* by number; NULL: not made yet */
        uint32_t count;
};

static void hang_up(struct link *link, const char *why);

/* ---- dialing ---- */

static void tell_waiters(struct link *link, const struct failure *failure)
{
        struct list_head *at;

        while ((at = list_pop_front(&link->waiters))) {
                struct link_waiter *waiter = LIST_ENTRY(at, struct link_waiter, of_link);

                waiter->done(waiter, failure);
        }
}

static void dial(struct link *link)
{
        if (link->dialing || link->client)
                return;
        link->dialing = true;
        dialer_dial(link->links->dialer, &link->dial);
}

static struct failure unavailable(const struct link *link)
{
        struct failure failure =
                failure_make(FAILURE_UNAVAILABLE, NULL, "no connection to samovard: %s", link->why);

        failure.retry_ms = link->wait_ms ? link->wait_ms : WAIT_MS_MIN;
        return failure;
}

static void try_later(struct link *link)
{
        link->wait_ms = link->wait_ms ? 2 * link->wait_ms : WAIT_MS_MIN;
        if (link->wait_ms > WAIT_MS_MAX)
                link->wait_ms = WAIT_MS_MAX;
        if (link->wanted)
                loop_timer_set(link->again, link->wait_ms * NS_PER_MS);
}

static void take_events(struct link *link);

static void on_readable(void *arg, unsigned mask)
{
        (void)mask;
        take_events(arg);
}

static void watch(struct link *link)
{
        unsigned mask = LOOP_READ;

        if (!link->watch)
                return;
        if (smv_wants_write(link->client))
                mask |= LOOP_WRITE;
        if (loop_watch_set(link->watch, mask))
                log_warn("link_watch_failed principal=%s", link->principal ? link->principal : "");
}

static void on_dialed(struct dial *dialed, struct smv_client *client, const char *why)
{
        struct link *link = (struct link *)(void *)((char *)dialed - offsetof(struct link, dial));
        struct failure failure;
        int r = 0;

        link->dialing = false;
        link->client = client;
        if (client)
                smv_wake_after(client, link->links->conf->wake_bytes);
        if (client)
                r = loop_watch_new(link->links->conf->loop, smv_fd(client), LOOP_READ, on_readable,
                                   link, &link->watch);
        if (r)
                link->client = smv_close(client);
        if (!link->client) {
                snprintf(link->why, sizeof(link->why), "%s", r ? strerror(-r) : why);
                log_limited(LOG_WARN, "daemon_away error=%s", link->why);
                try_later(link);
                failure = unavailable(link);
                tell_waiters(link, &failure);
                return;
        }
        log_info("daemon_connected socket=%s principal=%s",
                 smv_socket_used(client) ? smv_socket_used(client) : "",
                 link->principal ? link->principal : "");
        link->generation++;
        link->wait_ms = 0;
        *link->why = '\0';
        tell_waiters(link, NULL);
        take_events(link);
}

/* ---- events ---- */

static struct link_stream *find(struct link *link, uint32_t id)
{
        list_each(at, &link->buckets[id % BUCKETS])
                if (LIST_ENTRY(at, struct link_stream, of_link)->id == id)
                        return LIST_ENTRY(at, struct link_stream, of_link);
        return NULL;
}

static void finish(struct link_ask *ask)
{
        for (uint32_t i = 0; i < ask->count; i++)
                list_remove(&ask->streams[i].of_link);
        ask->link = NULL;
        ask->living = 0;
}

static void take_reply(struct link *link, struct link_ask *ask, const struct smv_event *event)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        ask->replied = true;
        if (event->code)
                smv_error(link->client, &problem);
        if (event->code || !ask->on_event)
                finish(ask);
        ask->on_reply(ask, event, event->code ? &problem : NULL);
}

static void take_event(struct link *link, const struct smv_event *event)
{
        struct link_stream *stream = find(link, event->stream);
        struct link_ask *ask = stream ? stream->ask : NULL;

        if (!ask) /* it was removed meanwhile */
                return;
        if (event->kind == SMV_EVENT_REPLY) {
                take_reply(link, ask, event);
                return;
        }
        if (event->kind == SMV_EVENT_END) {
                list_remove(&stream->of_link);
                if (!--ask->living)
                        finish(ask);
        }
        if (ask->on_event)
                ask->on_event(ask, event->stream - ask->first, event);
}

/*
 * The event that there is no memory for stays where it is.  To hang up instead would leave requests
 * without an end.
 */
static void wait_for_memory(struct link *link)
{
        log_limited(LOG_WARN, "link_has_no_memory principal=%s",
                    link->principal ? link->principal : "");
        loop_watch_set(link->watch, 0);
        loop_timer_set(link->again, WAIT_MS_MIN * NS_PER_MS);
}

/* -ENOTCONN comes last: by then the library has ended every request. */
static void take_events(struct link *link)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        int r = 1;

        for (unsigned i = 0; link->client; i++) {
                if (i == EVENTS_A_TURN) {
                        loop_timer_set(link->again, 0);
                        break;
                }
                r = smv_next(link->client, &event, 0);
                if (r <= 0)
                        break;
                take_event(link, &event);
        }
        if (!link->client)
                return;
        if (r == -ENOMEM) {
                wait_for_memory(link);
                return;
        }
        if (r < 0 && r != -ENODATA) {
                smv_error(link->client, &problem);
                hang_up(link, problem.message);
                return;
        }
        watch(link);
}

static void hang_up(struct link *link, const char *why)
{
        snprintf(link->why, sizeof(link->why), "%s", why);
        log_limited(LOG_WARN, "daemon_lost error=%s", link->why);
        link->watch = loop_watch_free(link->watch);
        link->client = smv_close(link->client);
        if (link->wanted)
                loop_timer_set(link->again, WAIT_MS_MIN * NS_PER_MS);
}

static void on_again(void *arg)
{
        struct link *link = arg;

        if (link->client)
                take_events(link);
        else
                dial(link);
}

/* ---- for calls ---- */

struct smv_client *link_client(struct link *link)
{
        return link->client;
}

const char *link_why(const struct link *link)
{
        return link->why;
}

uint64_t link_generation(const struct link *link)
{
        return link->generation;
}

void link_wait(struct link *link, struct link_waiter *waiter)
{
        struct failure failure;

        link->wanted = true;
        if (link->client) {
                waiter->done(waiter, NULL);
                return;
        }
        if (!link->dialing && link->wait_ms) {
                failure = unavailable(link);
                waiter->done(waiter, &failure);
                return;
        }
        list_push_back(&link->waiters, &waiter->of_link);
        dial(link);
}

void link_forget(struct link_waiter *waiter)
{
        list_remove(&waiter->of_link);
}

void link_add(struct link *link, struct link_ask *ask, struct link_stream *streams, uint32_t first,
              uint32_t count)
{
        ask->link = link;
        ask->streams = streams;
        ask->first = first;
        ask->count = ask->living = count;
        ask->replied = false;
        for (uint32_t i = 0; i < count; i++) {
                streams[i] = (struct link_stream){ .ask = ask, .id = first + i };
                list_push_back(&link->buckets[streams[i].id % BUCKETS], &streams[i].of_link);
        }
}

/* A stream that was not accepted yet cannot be detached, and nobody knows its resume id. */
static void leave(struct smv_client *client, const struct link_ask *ask, uint32_t stream)
{
        uint32_t request;

        if (!ask->keeps || !ask->replied || smv_ask_detach(client, stream, &request))
                smv_cancel(client, stream);
}

void link_remove(struct link_ask *ask)
{
        struct link *link = ask->link;

        if (!link)
                return;
        for (uint32_t i = 0; ask->on_event && link->client && i < ask->count; i++)
                if (!list_is_empty(&ask->streams[i].of_link))
                        leave(link->client, ask, ask->streams[i].id);
        finish(ask);
        link_flush(link);
}

void link_flush(struct link *link)
{
        if (link->client)
                watch(link);
}

/* ---- all of them ---- */

static void free_link(struct link *link)
{
        loop_timer_free(link->again);
        loop_watch_free(link->watch);
        smv_close(link->client);
        free(link->principal);
        free(link);
}

static struct link *make_link(struct links *links, const char *principal)
{
        struct link *link = calloc(1, sizeof(*link));

        if (!link)
                return NULL;
        link->links = links;
        link->principal = principal ? strdup(principal) : NULL;
        list_init(&link->waiters);
        for (unsigned i = 0; i < BUCKETS; i++)
                list_init(&link->buckets[i]);
        link->dial = (struct dial){ .socket = links->conf->socket,
                                    .use_fd = links->conf->use_daemon_fd,
                                    .fd = links->conf->daemon_fd,
                                    .principal = link->principal,
                                    .done = on_dialed };
        if ((principal && !link->principal) ||
            loop_timer_new(links->conf->loop, on_again, link, &link->again)) {
                free_link(link);
                return NULL;
        }
        return link;
}

struct link *links_get(struct links *links, uint32_t number, const char *principal)
{
        struct link **at;

        if (number >= links->count) {
                at = reallocarray(links->at, number + 1, sizeof(*at));
                if (!at)
                        return NULL;
                memset(at + links->count, 0, (number + 1 - links->count) * sizeof(*at));
                links->at = at;
                links->count = number + 1;
        }
        if (!links->at[number])
                links->at[number] = make_link(links, principal);
        return links->at[number];
}

int links_new(const struct bridge_conf *conf, struct links **ret_links)
{
        struct links *links = calloc(1, sizeof(*links));
        int r;

        if (!links)
                return error_raise(-ENOMEM);
        links->conf = conf;
        r = dialer_new(conf->loop, &links->dialer);
        if (r) {
                links_free(links);
                return error_pass(r);
        }
        *ret_links = links;
        return 0;
}

struct links *links_free(struct links *links)
{
        if (!links)
                return NULL;
        dialer_free(links->dialer);
        for (uint32_t i = 0; i < links->count; i++)
                if (links->at[i])
                        free_link(links->at[i]);
        free(links->at);
        free(links);
        return NULL;
}
