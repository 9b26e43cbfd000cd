#include "tests/pipeline/pipeline-rig.h"

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

struct pipeline_rig *pipeline_rig_new(void)
{
        struct pipeline_rig *rig =
                mmap(NULL, sizeof(*rig), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_true(rig != MAP_FAILED);
        strcpy(rig->directory, "/tmp/pipeline-XXXXXX");
        assert_non_null(mkdtemp(rig->directory));
        snprintf(rig->socket, sizeof(rig->socket), "%s/sock", rig->directory);
        return rig;
}

struct pipeline_rig *pipeline_rig_free(struct pipeline_rig *rig)
{
        char lock[128];

        snprintf(lock, sizeof(lock), "%s.lock", rig->socket);
        unlink(lock);
        rmdir(rig->directory);
        munmap(rig, sizeof(*rig));
        return NULL;
}

static uint64_t tokens_read(void *arg)
{
        const struct pipeline_rig *rig = arg;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < CLIENTS; i++)
                sum += counter_get(&rig->clients[i].tokens);
        return sum;
}

/* A reader that wishes for many records does not come for few, so the daemon does not wait for
 * it. */
struct pipeline_conf pipeline_rig_conf(struct pipeline_rig *rig, const struct variant *variant)
{
        return (struct pipeline_conf){
                .socket = rig->socket,
                .connections = 2 * CLIENTS,
                .requests = 64,
                .context = 4096,
                .depth = variant->batch ? 2 : 1,
                .model = { .pause_every = 512,
                           .pause_ns = 2000000,
                           .meet_every = variant->batch ? 0 : 8,
                           .read = tokens_read,
                           .read_arg = rig,
                           .cpu = -1 },
                .facts = &rig->pipeline,
        };
}

struct checking_client_conf pipeline_rig_client_conf(const struct pipeline_rig *rig,
                                                     const struct variant *variant, uint32_t number,
                                                     uint64_t tokens)
{
        return (struct checking_client_conf){
                .connect = { .socket = rig->socket,
                             .transport = variant->transport,
                             .doorbell = variant->doorbell,
                             .ring_bytes = variant->transport == SMV_TRANSPORT_RING ? 64 << 10 : 0,
                             .spin_us = number == 3 ? 20 : 0 },
                .wait = variant->wait,
                .batch = variant->batch,
                .streams = STREAMS(number),
                .tokens = tokens * STREAMS(number) / STREAMS_ALL,
                .tokens_max = 3000,
                .seed = 0x5eed + number,
                .nap_every = 4000,
                .nap_ns = 20000000,
        };
}

uint64_t pipeline_rig_tokens(uint64_t initial)
{
        const char *asked = getenv("SMV_PIPELINE_TOKENS");

        return asked ? strtoull(asked, NULL, 10) : initial;
}

static void print(const struct pipeline_rig *rig, const struct variant *variant, uint64_t ns)
{
        uint64_t records = 0, sleeps = 0, naps = 0, stopped = 0, tokens = tokens_read((void *)rig);

        for (uint32_t i = 0; i < CLIENTS; i++) {
                records += counter_get(&rig->clients[i].records);
                sleeps += counter_get(&rig->clients[i].sleeps);
                naps += counter_get(&rig->clients[i].naps);
                stopped += counter_get(&rig->clients[i].stopped);
        }
        printf("# %s: %llu tokens in %.1f s (%.0f a ms), %llu records, %llu sleeps, %llu naps, "
               "%llu streams cut\n# ",
               variant->name, (unsigned long long)tokens, (double)ns / 1e9,
               (double)tokens / ((double)ns / 1e6), (unsigned long long)records,
               (unsigned long long)sleeps, (unsigned long long)naps, (unsigned long long)stopped);
        pipeline_print(&rig->pipeline, stdout);
        fflush(stdout);
}

void pipeline_rig_check(const struct pipeline_rig *rig, const struct variant *variant, uint64_t ns)
{
        uint64_t begun = 0, ends = 0;

        print(rig, variant, ns);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                if (rig->clients[i].what[0])
                        fail_msg("client %u, %s: %s", i, variant->name, rig->clients[i].what);
                begun += counter_get(&rig->clients[i].begun);
                ends += counter_get(&rig->clients[i].ends);
        }
        assert_true(begun > 0);
        assert_int_equal(ends, begun);
        assert_int_equal(counter_get(&rig->pipeline.stats.streams_ended), begun);
        assert_int_equal(counter_get(&rig->pipeline.stats.tokens_out), tokens_read((void *)rig));
        assert_int_equal(counter_get(&rig->pipeline.model.lost), 0);
        /*
         * A daemon that died would wake no reader, so the library looks for itself once a second.
         * Therefore a futex that was not woken shows as a meeting of a second.  A busy
         * machine has one of those now and then.
         */
        if (variant->doorbell == SMV_DOORBELL_FUTEX)
                assert_true(counter_get(&rig->pipeline.model.slow_meetings) <
                            3 + counter_get(&rig->pipeline.model.meetings) / 1000);
}
