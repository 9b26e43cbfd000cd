#include "tests/road/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A client's streams are 1, 4, 7 and 10, with the same share of tokens, so that all clients are
 * under way until the end. */
#define STREAMS(number) (1 + 3 * (number))
#define STREAMS_ALL     22u

struct walk *walk_new(void)
{
        struct walk *walk = mmap(NULL, sizeof(*walk), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_true(walk != MAP_FAILED);
        strcpy(walk->directory, "/tmp/road-XXXXXX");
        assert_non_null(mkdtemp(walk->directory));
        snprintf(walk->socket, sizeof(walk->socket), "%s/sock", walk->directory);
        return walk;
}

struct walk *walk_free(struct walk *walk)
{
        char lock[128];

        snprintf(lock, sizeof(lock), "%s.lock", walk->socket);
        unlink(lock);
        rmdir(walk->directory);
        munmap(walk, sizeof(*walk));
        return NULL;
}

static uint64_t tokens_read(void *arg)
{
        const struct walk *walk = arg;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < WALKERS; i++)
                sum += counter_get(&walk->walkers[i].tokens);
        return sum;
}

/* A reader that wishes for many records does not come for few, so the daemon does not wait for
 * it. */
struct road_conf walk_road_conf(struct walk *walk, const struct way *way)
{
        return (struct road_conf){
                .socket = walk->socket,
                .connections = 2 * WALKERS,
                .requests = 64,
                .context = 4096,
                .depth = way->batch ? 2 : 1,
                .model = { .pause_every = 512,
                           .pause_ns = 2000000,
                           .meet_every = way->batch ? 0 : 8,
                           .read = tokens_read,
                           .read_arg = walk,
                           .cpu = -1 },
                .facts = &walk->road,
        };
}

struct walker_conf walk_walker_conf(const struct walk *walk, const struct way *way, uint32_t number,
                                    uint64_t tokens)
{
        return (struct walker_conf){
                .connect = { .socket = walk->socket,
                             .transport = way->transport,
                             .doorbell = way->doorbell,
                             .ring_bytes = way->transport == SMV_TRANSPORT_RING ? 64 << 10 : 0,
                             .spin_us = number == 3 ? 20 : 0 },
                .wait = way->wait,
                .batch = way->batch,
                .streams = STREAMS(number),
                .tokens = tokens * STREAMS(number) / STREAMS_ALL,
                .tokens_max = 3000,
                .seed = 0x5eed + number,
                .nap_every = 4000,
                .nap_ns = 20000000,
        };
}

uint64_t walk_tokens(uint64_t initial)
{
        const char *asked = getenv("SMV_ROAD_TOKENS");

        return asked ? strtoull(asked, NULL, 10) : initial;
}

static void print(const struct walk *walk, const struct way *way, uint64_t ns)
{
        uint64_t records = 0, sleeps = 0, naps = 0, stopped = 0, tokens = tokens_read((void *)walk);

        for (uint32_t i = 0; i < WALKERS; i++) {
                records += counter_get(&walk->walkers[i].records);
                sleeps += counter_get(&walk->walkers[i].sleeps);
                naps += counter_get(&walk->walkers[i].naps);
                stopped += counter_get(&walk->walkers[i].stopped);
        }
        printf("# %s: %llu tokens in %.1f s (%.0f a ms), %llu records, %llu sleeps, %llu naps, "
               "%llu streams cut\n# ",
               way->name, (unsigned long long)tokens, (double)ns / 1e9,
               (double)tokens / ((double)ns / 1e6), (unsigned long long)records,
               (unsigned long long)sleeps, (unsigned long long)naps, (unsigned long long)stopped);
        road_print(&walk->road, stdout);
        fflush(stdout);
}

void walk_check(const struct walk *walk, const struct way *way, uint64_t ns)
{
        uint64_t begun = 0, ends = 0;

        print(walk, way, ns);
        for (uint32_t i = 0; i < WALKERS; i++) {
                if (walk->walkers[i].what[0])
                        fail_msg("client %u, %s: %s", i, way->name, walk->walkers[i].what);
                begun += counter_get(&walk->walkers[i].begun);
                ends += counter_get(&walk->walkers[i].ends);
        }
        assert_true(begun > 0);
        assert_int_equal(ends, begun);
        assert_int_equal(counter_get(&walk->road.stats.ends), begun);
        assert_int_equal(counter_get(&walk->road.stats.tokens_out), tokens_read((void *)walk));
        assert_int_equal(counter_get(&walk->road.model.lost), 0);
        /*
         * A daemon that died would wake no reader, so the library looks for itself once a second.
         * Therefore a futex that was not woken shows as a meeting of a second.  A busy
         * machine has one of those now and then.
         */
        if (way->doorbell == SMV_DOORBELL_FUTEX)
                assert_true(counter_get(&walk->road.model.slow_meetings) <
                            3 + counter_get(&walk->road.model.meetings) / 1000);
}
