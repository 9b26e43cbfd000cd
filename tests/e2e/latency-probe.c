#include "tests/e2e/latency-probe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/manual-ring.h"

#define SAMPLES_MAX 65536u
#define PAUSE_MS    2
#define TOKEN_EVERY 4

struct samples {
        uint32_t count;
        uint32_t us[SAMPLES_MAX];
};

struct latency_probe {
        pid_t pid;
        uint32_t stop; /* tells the process to stop */
        struct samples answers, tokens;
};

static uint64_t now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void note(struct samples *samples, uint64_t since_us)
{
        if (samples->count < SAMPLES_MAX)
                samples->us[samples->count++] = (uint32_t)(now_us() - since_us);
}

static void ask_and_ask(struct latency_probe *probe, const struct daemon_fixture *fixture)
{
        const struct want want = {
                .prompt = "a", .as_ids = true, .max_tokens = 1, .ignore_eos = true
        };

        while (!__atomic_load_n(&probe->stop, __ATOMIC_RELAXED)) {
                struct raw_client *client = raw_client_greet(fixture);

                /* A raw client stores everything that it reads, so it does not live long. */
                for (uint32_t i = 0; i < 256 && !__atomic_load_n(&probe->stop, __ATOMIC_RELAXED);
                     i++, sleep_ms(PAUSE_MS)) {
                        uint64_t start = now_us();

                        if (i % TOKEN_EVERY) {
                                raw_client_call(client, "op=s stream=u", "cancel", 4000000000u);
                                note(&probe->answers, start);
                        } else {
                                raw_client_complete(client, &want);
                                note(&probe->tokens, start);
                        }
                }
                raw_client_close(client);
        }
}

struct latency_probe *latency_probe_start(const struct daemon_fixture *fixture)
{
        struct latency_probe *probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert(probe != MAP_FAILED);
        probe->pid = fork_child();
        if (!probe->pid) {
                ask_and_ask(probe, fixture);
                _exit(0);
        }
        return probe;
}

static int compare(const void *a, const void *b)
{
        const uint32_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void print(const char *words, struct samples *samples)
{
        uint32_t n = samples->count;

        if (!n) {
                printf(" %s: none came", words);
                return;
        }
        qsort(samples->us, n, sizeof(*samples->us), compare);
        printf(" %s p50 %u p99 %u max %u us (%u)", words, samples->us[n / 2],
               samples->us[(n * 99 + 99) / 100 - 1], samples->us[n - 1], n);
}

void latency_probe_stop(struct latency_probe *probe, const char *words)
{
        __atomic_store_n(&probe->stop, 1, __ATOMIC_RELAXED);
        assert_int_equal(await_process(probe->pid), 0);
        printf("# latency %s:", words);
        print("an answer", &probe->answers);
        print("; a token", &probe->tokens);
        printf("\n");
        munmap(probe, sizeof(*probe));
}

void latency_probe_baseline(const struct daemon_fixture *fixture, uint32_t ms)
{
        struct latency_probe *probe = latency_probe_start(fixture);

        sleep_ms(ms);
        latency_probe_stop(probe, "with no attack");
}
