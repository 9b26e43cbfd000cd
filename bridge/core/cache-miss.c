#include "bridge/core/cache-miss.h"

#include <errno.h>
#include <string.h>

#include "bridge/core/metrics.h"

/* As much of a text is looked for; its beginning tells it from others. */
#define NEEDLE_BYTES 512u

struct cache_miss cache_miss_of(const struct conversation *conversation)
{
        const struct turn *turn = conversation->turns;
        struct cache_miss miss = { .tools = conversation->tools != NULL };

        if (turn && turn->role == TURN_SYSTEM) {
                miss.system = turn->content;
                turn = turn->next;
        }
        if (turn)
                miss.first = turn->content;
        return miss;
}

/* ---- the place ---- */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Templates often cut the blanks around a text. */
static struct text trim(struct text text)
{
        while (text.bytes && is_blank(*text.at)) {
                text.at++;
                text.bytes--;
        }
        while (text.bytes && is_blank(text.at[text.bytes - 1]))
                text.bytes--;
        return text;
}

/* Where the text begins, from byte `from` on; SIZE_MAX: nowhere. */
static size_t find(const struct cache_miss *miss, struct text text, size_t from)
{
        size_t bytes = text.bytes < NEEDLE_BYTES ? text.bytes : NEEDLE_BYTES;
        const char *found;

        if (!bytes)
                return SIZE_MAX;
        found = memmem(miss->prompt.at + from, miss->prompt.bytes - from, text.at, bytes);
        return found ? (size_t)(found - miss->prompt.at) : SIZE_MAX;
}

/* Templates show tools before the system text or behind it, but always before the messages. */
enum cache_miss_part cache_miss_part(const struct cache_miss *miss, size_t at)
{
        enum cache_miss_part between = miss->tools ? CACHE_MISS_TOOLS : CACHE_MISS_MESSAGES;
        struct text system = trim(miss->system);
        size_t begin = find(miss, system, 0), end = 0, first;

        if (begin != SIZE_MAX) {
                end = begin + system.bytes < miss->prompt.bytes ? begin + system.bytes
                                                                : miss->prompt.bytes;
                if (at < begin)
                        return miss->tools ? CACHE_MISS_TOOLS : CACHE_MISS_SYSTEM;
                if (at < end)
                        return CACHE_MISS_SYSTEM;
        }
        first = find(miss, trim(miss->first), end);
        return first != SIZE_MAX && at < first ? between : CACHE_MISS_MESSAGES;
}

/* ---- asking ---- */

static void end(struct call *call, enum cache_miss_part part)
{
        static const enum miss_reason reasons[] = {
                [CACHE_MISS_UNKNOWN] = MISS_UNKNOWN,
                [CACHE_MISS_TOOLS] = MISS_TOOLS,
                [CACHE_MISS_SYSTEM] = MISS_SYSTEM,
                [CACHE_MISS_MESSAGES] = MISS_MESSAGES,
        };
        struct cache_miss *miss = call->asking;

        metrics_miss(call->bridge->metrics, reasons[part]);
        miss->part = part;
        miss->done(call);
}

static void on_refused(struct call *call, const struct failure *failure)
{
        (void)failure;
        end(call, CACHE_MISS_UNKNOWN);
}

static void on_pieces(struct call *call, const struct smv_event *answer)
{
        size_t at = 0;

        for (size_t i = 0; i < answer->piece_count; i++)
                at += answer->pieces[i].count;
        end(call, cache_miss_part(call->asking, at));
}

static void on_prompt(struct call *call, const struct smv_event *answer)
{
        struct cache_miss *miss = call->asking;
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        int r = -ENOTCONN;

        miss->prompt = arena_copy(&call->arena, answer->text, answer->text_bytes);
        if (!miss->prompt.at || miss->diverged_at > answer->token_count) {
                end(call, CACHE_MISS_UNKNOWN);
                return;
        }
        if (client)
                r = smv_ask_pieces(client, miss->model, answer->tokens, miss->diverged_at,
                                   &request);
        call_ask(call, r, request, on_pieces);
}

void cache_miss_find(struct call *call, struct cache_miss *miss, const struct smv_generate *options,
                     uint32_t diverged_at, void (*done)(struct call *call))
{
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        int r = client ? smv_ask_template(client, options, 1, &request) : -ENOTCONN;

        miss->diverged_at = diverged_at;
        miss->model = options->model;
        miss->done = done;
        call->asking = miss;
        call->on_refused = on_refused;
        call_ask(call, r, request, on_prompt);
}
