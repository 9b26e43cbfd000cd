#include "cli/work-reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json/plural.h"

uint64_t work_number(const struct json_document *work, uint32_t row, const char *key)
{
        uint64_t number = 0;

        json_whole(work, json_member(work, row, key), &number);
        return number;
}

const char *work_word(const struct json_document *work, uint32_t row, const char *key)
{
        const char *word = json_string(work, json_member(work, row, key), NULL);

        return word ? word : "?";
}

bool work_says(const struct json_document *work, uint32_t row, const char *key)
{
        return json_member(work, row, key) != JSON_NONE;
}

/* "needs 12 blocks, 9 free (5 cached by others, 2 by its user)" */
static void add_blocks(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        uint64_t cached = work_number(work, row, "free_cached");
        uint64_t needs = work_number(work, row, "needs"), own, others;
        int used = snprintf(to, size, "needs %" PRIu64 " block%s", needs, plural(needs));

        own = work_number(work, row, "free_cached_own");
        own = own < cached ? own : cached; /* the daemon may have changed them one by one */
        others = cached - own;
        if (work_says(work, row, "free"))
                used += snprintf(to + used, size - (size_t)used, ", %" PRIu64 " free",
                                 work_number(work, row, "free"));
        if (others && own)
                snprintf(to + used, size - (size_t)used,
                         " (%" PRIu64 " cached by others, %" PRIu64 " by its user)", others, own);
        else if (others || own)
                snprintf(to + used, size - (size_t)used, " (%" PRIu64 " cached by %s)",
                         others + own, others ? "others" : "its user");
}

/* "needs 36 window pages, 9 left" */
static void add_windows(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        uint64_t needs = work_number(work, row, "needs");

        snprintf(to, size, "needs %" PRIu64 " window page%s, %" PRIu64 " left", needs,
                 plural(needs), work_number(work, row, "free"));
}

static void add_forecast(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        if (work_says(work, row, "expected"))
                snprintf(to, size,
                         "waits: the pool is expected to need %" PRIu64 " blocks of %" PRIu64,
                         work_number(work, row, "expected"), work_number(work, row, "pool"));
        else
                snprintf(to, size, "waits until the pool will hold it");
}

static void add_share(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        bool slots = work_number(work, row, "user_slots") > 0;
        const char *has = slots ? "user_slots" : "user_blocks";
        const char *may = slots ? "user_slots_max" : "user_blocks_max";

        if (work_says(work, row, has))
                snprintf(to, size,
                         "others come first: its user would have %" PRIu64 " %s, its share is "
                         "%" PRIu64,
                         work_number(work, row, has), slots ? "slots" : "blocks",
                         work_number(work, row, may));
        else
                snprintf(to, size, "others come first: its user has its share");
}

/* Adds nothing if it does not wait; handles never do. */
static void add_wait(const struct json_document *work, uint32_t row, char *to, size_t size)
{
        static const char *const why[][2] = {
                { "turn", "behind others" },
                { "slot", "waits for a slot" },
                { "prefix", "waits for a common beginning" },
                { "reader", "its client does not read" },
        };
        const char *word = work_word(work, row, "waits_for");

        if (!strcmp(word, "blocks"))
                add_blocks(work, row, to, size);
        else if (!strcmp(word, "windows"))
                add_windows(work, row, to, size);
        else if (!strcmp(word, "forecast"))
                add_forecast(work, row, to, size);
        else if (!strcmp(word, "share"))
                add_share(work, row, to, size);
        for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++)
                if (!strcmp(word, why[i][0]))
                        snprintf(to, size, "%s", why[i][1]);
}

const char *work_facts(const struct json_document *work, uint32_t row, char to[WORK_FACTS_BYTES])
{
        uint64_t times = work_number(work, row, "preemptions");
        size_t used = 0;

        to[0] = '\0';
        add_wait(work, row, to, WORK_FACTS_BYTES);
        used = strlen(to);
        if (times)
                snprintf(to + used, WORK_FACTS_BYTES - used, "%spreempted %" PRIu64 " time%s",
                         used ? "; " : "", times, plural(times));
        return to;
}
