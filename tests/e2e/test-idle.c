/*
 * An idle daemon costs nothing: no timer ticks, no thread spins.  The kernel's counters are read
 * over all its threads, with eight clients connected, some of which have streamed before.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/talk.h"

#define CLIENTS 8

struct cost {
        uint64_t ticks, switches;
        uint32_t threads;
};

static uint64_t number_after(const char *text, const char *name)
{
        const char *at = strstr(text, name);

        assert_non_null(at);
        return strtoull(at + strlen(name), NULL, 10);
}

static void add_thread(struct cost *cost, pid_t pid, const char *thread)
{
        char path[320], *text, *at;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, thread);
        text = file_text(path);
        at = strrchr(text, ')'); /* after it state is the 3rd, utime the 14th, stime the 15th */
        assert_non_null(at);
        for (int i = 0; i < 12; i++)
                at = strchr(at + 1, ' ');
        cost->ticks += strtoull(at, &at, 10);
        cost->ticks += strtoull(at, &at, 10);
        free(text);

        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, thread);
        text = file_text(path);
        cost->switches += number_after(text, "\nvoluntary_ctxt_switches:");
        cost->switches += number_after(text, "\nnonvoluntary_ctxt_switches:");
        free(text);
        cost->threads++;
}

static struct cost cost_of(pid_t pid)
{
        struct cost cost = { 0 };
        struct dirent *entry;
        char path[64];
        DIR *threads;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        threads = opendir(path);
        assert_non_null(threads);
        while ((entry = readdir(threads)))
                if (entry->d_name[0] != '.')
                        add_thread(&cost, pid, entry->d_name);
        closedir(threads);
        return cost;
}

/*
 * A thread that still had work to do, the crew's last spin or the last reply, may have been
 * delayed. Then the test measures again.  A timer that ticks or a thread that spins shows at every
 * measurement.
 */
static void expect_quiet(const struct house *house, uint32_t seconds, const char *words)
{
        struct cost before, after;
        uint32_t looks = 0;
        bool quiet;

        sleep_ms(500);
        do {
                before = cost_of(house->pid);
                sleep_ms(seconds * 1000);
                after = cost_of(house->pid);
                printf("# %u s %s, %u threads: %u ticks of CPU, %u context switches\n", seconds,
                       words, after.threads, (unsigned)(after.ticks - before.ticks),
                       (unsigned)(after.switches - before.switches));
                assert_int_equal(after.threads, before.threads);
                quiet = after.ticks - before.ticks <= 1 && after.switches - before.switches <= 5;
        } while (!quiet && ++looks < 3);
        assert_true(quiet);
}

static void idle_with_eight_clients_it_sleeps(void **state)
{
        const struct want want = { .prompt = "Once", .max_tokens = 100, .ignore_eos = true };
        struct house *house = *state;
        struct talk *talks[CLIENTS];

        HOUSE(house, "--threads", "2");
        for (size_t i = 0; i < CLIENTS; i++) {
                talks[i] = talk_greet(house);
                if (i & 1)
                        talk_whole(talks[i], &want);
        }
        expect_quiet(house, scaled(3, 60), "idle");
        for (size_t i = 0; i < CLIENTS; i++)
                talk_close(talks[i]);
        house_stop(house);
}

/* A daemon whose only streams wait for a reader is idle too, but for the deadline that ends
 * them. */
static void stalled_it_sleeps_too(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint64_t end;

        HOUSE(house, "--ring-bytes", "64K");
        talk = talk_greet(house);
        for (uint32_t i = 0; i < 2; i++) {
                const struct want want = { .prompt = "Once",
                                           .max_tokens = LONG_TOLD,
                                           .told = TOLD_MOST,
                                           .seed = i,
                                           .ignore_eos = true };

                talk_generate(talk, &want);
        }
        for (end = now_ms() + PATIENCE_MS; house_status(house, "requests.stalled") < 2;
             sleep_ms(100))
                assert_true(now_ms() < end);
        expect_quiet(house, scaled(2, 20), "stalled");
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(idle_with_eight_clients_it_sleeps),
                STORY(stalled_it_sleeps_too),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
