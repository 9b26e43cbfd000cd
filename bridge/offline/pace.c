#include "bridge/offline/pace.h"

#include <unistd.h>

#include "bridge/core/link.h"
#include "json/reader.h"

#define BEAT_NS   UINT64_C(100000000)
#define NODES_MAX 65536u
#define WHY_BYTES 128u
/* At least so many wait for a slot.  If answers are short, many slots become free at a time. */
#define SPARE_MIN 16u
#define LIMIT_MAX 4096u /* what the library lets one connection ask at a time */

static uint32_t number_of(const struct json_document *json, uint32_t object, const char *key)
{
        uint64_t number = 0;

        json_whole(json, json_member(json, object, key), &number);
        return number < LIMIT_MAX ? (uint32_t)number : LIMIT_MAX;
}

/* The sequences of this user that run. */
static uint32_t running(const struct json_document *json)
{
        uint32_t users = json_member(json, 0, "users");

        for (uint32_t at = json_first(json, users); at != JSON_NONE; at = json_next(json, at)) {
                uint64_t uid = 0;

                if (json_whole(json, json_member(json, at, "uid"), &uid) && uid == getuid())
                        return number_of(json, at, "running");
        }
        return 0;
}

static void take_status(struct pace *pace, const char *text, size_t bytes)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];
        uint32_t slots;

        if (json_parse(text, bytes, NODES_MAX, &json, why, sizeof(why)))
                return;
        slots = number_of(json, json_member(json, 0, "limits"), "max_seqs");
        if (!slots)
                slots = running(json);
        json_free(json);
        pace->wanted = slots + (slots / 2 > SPARE_MIN ? slots / 2 : SPARE_MIN);
        if (pace->ceiling < LIMIT_MAX)
                pace->ceiling++;
        loop_timer_set(pace->step, 0);
}

static void on_status(struct link_ask *ask, const struct smv_event *reply,
                      const struct smv_problem *problem)
{
        struct pace *pace = (struct pace *)(void *)((char *)ask - offsetof(struct pace, ask));

        if (!problem)
                take_status(pace, reply->text, reply->text_bytes);
}

static void on_beat(void *arg)
{
        struct pace *pace = arg;
        struct smv_client *client = link_client(pace->link);
        uint32_t request;

        loop_timer_set(pace->beat, BEAT_NS);
        if (pace->ask.link || !client || smv_ask_status(client, &request))
                return;
        pace->ask.on_reply = on_status;
        link_add(pace->link, &pace->ask, &pace->stream, request, 1);
        link_flush(pace->link);
}

int pace_init(struct pace *pace, struct bridge *bridge, uint32_t fixed, struct loop_timer *step)
{
        int r;

        *pace = (struct pace){ .link = links_get(bridge->links, 0, NULL),
                               .step = step,
                               .fixed = fixed,
                               .wanted = SPARE_MIN,
                               .ceiling = LIMIT_MAX };
        r = loop_timer_new(bridge->conf.loop, on_beat, pace, &pace->beat);
        return r ? r : loop_timer_set(pace->beat, 0);
}

void pace_deinit(struct pace *pace)
{
        link_remove(&pace->ask);
        pace->beat = loop_timer_free(pace->beat);
}

uint32_t pace_limit(const struct pace *pace)
{
        uint32_t limit = pace->fixed ? pace->fixed : pace->wanted;

        return limit < pace->ceiling ? limit : pace->ceiling;
}

void pace_refused(struct pace *pace, uint32_t in_flight)
{
        pace->ceiling = in_flight;
}

void pace_connected(struct pace *pace)
{
        pace->ceiling = LIMIT_MAX;
        loop_timer_set(pace->beat, 0);
}
