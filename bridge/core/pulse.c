#include "bridge/core/pulse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bridge/core/context.h"
#include "bridge/core/link.h"
#include "json/reader.h"

#define BEAT_NS   UINT64_C(1000000000)
#define NODES_MAX 65536u
#define WHY_BYTES 128u

struct pulse {
        struct bridge *bridge;
        struct link *link;
        struct loop_timer *beat;
        struct link_waiter waiter;
        struct link_ask ask;
        struct link_stream stream;
        bool waiting, loaded;
        uint64_t generation; /* the connection that `loaded` and `share` are about */
        double share;
};

/* A user who may not see the counters gets a status without `loading`: then all is loaded. */
static void take_status(struct pulse *pulse, const char *text, size_t bytes)
{
        struct json_document *json = NULL;
        double loaded = 1, total = 1;
        char why[WHY_BYTES];
        uint32_t loading;

        if (json_parse(text, bytes, NODES_MAX, &json, why, sizeof(why)))
                return;
        loading = json_member(json, 0, "loading");
        if (loading != JSON_NONE) {
                json_real(json, json_member(json, loading, "bytes"), &loaded);
                json_real(json, json_member(json, loading, "total"), &total);
        }
        pulse->loaded = loaded >= total; /* the daemon knows the total before it answers */
        pulse->share = total > 0 ? loaded / total : 1;
        json_free(json);
}

static void on_status(struct link_ask *ask, const struct smv_event *reply,
                      const struct smv_problem *problem)
{
        struct pulse *pulse = (struct pulse *)(void *)((char *)ask - offsetof(struct pulse, ask));

        if (!problem)
                take_status(pulse, reply->text, reply->text_bytes);
}

static void ask(struct pulse *pulse)
{
        uint32_t request;

        if (pulse->ask.link || pulse->loaded || !link_client(pulse->link))
                return;
        if (smv_ask_status(link_client(pulse->link), &request))
                return;
        pulse->ask.on_reply = on_status;
        link_add(pulse->link, &pulse->ask, &pulse->stream, request, 1);
        link_flush(pulse->link);
}

static void on_connected(struct link_waiter *waiter, const struct failure *failure)
{
        struct pulse *pulse =
                (struct pulse *)(void *)((char *)waiter - offsetof(struct pulse, waiter));

        (void)failure;
        pulse->waiting = false;
}

static void beat(void *arg)
{
        struct pulse *pulse = arg;
        struct smv_client *client = link_client(pulse->link);

        if (link_generation(pulse->link) != pulse->generation) {
                pulse->generation = link_generation(pulse->link);
                pulse->loaded = false;
                pulse->share = 0;
        }
        ask(pulse);
        if (!client && !pulse->waiting) {
                pulse->waiting = true;
                link_wait(pulse->link, &pulse->waiter);
        }
        loop_timer_set(pulse->beat, BEAT_NS);
}

struct pulse_state pulse_state(const struct pulse *pulse)
{
        bool connected = link_client(pulse->link) != NULL;

        return (struct pulse_state){
                .connected = connected,
                .loaded = connected && pulse->generation == link_generation(pulse->link) &&
                          pulse->loaded,
                .share = connected ? pulse->share : 0,
        };
}

int pulse_new(struct bridge *bridge, struct pulse **ret_pulse)
{
        struct pulse *pulse = calloc(1, sizeof(*pulse));
        int r;

        if (!pulse)
                return error_raise(-ENOMEM);
        pulse->bridge = bridge;
        pulse->link = links_get(bridge->links, 0, NULL);
        if (!pulse->link) {
                free(pulse);
                return error_raise(-ENOMEM);
        }
        pulse->waiter.done = on_connected;
        r = loop_timer_new(bridge->conf.loop, beat, pulse, &pulse->beat);
        if (!r)
                r = loop_timer_set(pulse->beat, 0);
        if (r) {
                pulse_free(pulse);
                return error_pass(r);
        }
        *ret_pulse = pulse;
        return 0;
}

struct pulse *pulse_free(struct pulse *pulse)
{
        if (!pulse)
                return NULL;
        link_forget(&pulse->waiter);
        link_remove(&pulse->ask);
        loop_timer_free(pulse->beat);
        free(pulse);
        return NULL;
}
