/*
 * The HTTP server while its n-th allocation or system call fails, for every n.
 *
 * The promise: it starts or says why it does not; it does not crash, hang or leak; each request is
 * answered or its connection ends; each exchange that the program has is finished by it, or it
 * learns that the client is gone.  When the fault is over, a new client is served.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "tests/e2e/fault-injection.h"
#include "tests/unit/http-rig.h"

#define H       "Host: localhost\r\nx-api-key: 0123456789abcdef\r\n"
#define CLIENTS 6u

static char folder[64], key_file[80], socket_path[80];

/* Each client's request, and the end of its whole answer. */
static const struct {
        const char *request, *end;
} asked[CLIENTS] = {
        { "POST /echo?a=b HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
          "GET /now HTTP/1.1\r\n" H "\r\n",
          "now" },
        { "POST /spool HTTP/1.1\r\n" H "Content-Length: 3\r\nConnection: close\r\n\r\nabc",
          "3:abc" },
        { "GET /stream HTTP/1.1\r\n" H "\r\n", "0\r\n\r\n" },
        { "GET /echo HTTP/1.1\r\n\r\n", "bad_request" },
        { "OPTIONS / HTTP/1.1\r\n" H
          "Origin: http://localhost\r\nAccess-Control-Request-Method: PUT\r\n"
          "Access-Control-Request-Headers: content-type\r\n\r\n",
          "86400\r\n\r\n" },
        { "POST /small HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
          "100 Continue" },
};

struct trial {
        struct rig rig;
        struct client clients[CLIENTS + 1]; /* the last one over the Unix socket */
        uint32_t count;
        bool finished; /* the stream */
};

static bool is_done(struct trial *trial, uint32_t i)
{
        const struct client *client = &trial->clients[i];
        const char *end = i < CLIENTS ? asked[i].end : "now";

        /* A fault may be answered as well. */
        return client->ended || client->failed || client_has(client, end) ||
               client_has(client, "HTTP/1.1 4") || client_has(client, "HTTP/1.1 5");
}

static bool are_done(struct rig *rig, void *arg)
{
        struct trial *trial = arg;
        bool done = true;

        for (uint32_t i = 0; i < trial->count; i++) {
                client_collect(&trial->clients[i]);
                done = done && is_done(trial, i);
        }
        if (rig->held_count && rig->held[0] && !trial->finished) {
                trial->finished = true;
                rig->pause(false);
                http_write(rig->held[0], "abc", 3);
                http_finish(rig->held[0]);
                rig->pause(true);
        }
        return done;
}

static void connect_all(struct trial *trial)
{
        struct client *last = &trial->clients[CLIENTS];

        for (; trial->count < CLIENTS; trial->count++) {
                client_connect(&trial->rig, &trial->clients[trial->count]);
                client_send(&trial->clients[trial->count], asked[trial->count].request);
        }
        *last = (struct client){ .rig = &trial->rig, .fd = sys_socket_unix() };
        assert_int_equal(sys_connect_unix(last->fd, socket_path), 0);
        client_send(last, "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
        trial->count++;
}

static int listen_all(struct rig *rig, char *why, size_t why_bytes)
{
        int r = rig_make(rig, why, why_bytes);

        if (!r)
                r = http_server_listen_tcp(rig->server, "127.0.0.1:0", &rig->port, why, why_bytes);
        if (!r)
                r = http_server_listen_unix(rig->server, socket_path, 0600, why, why_bytes);
        return r;
}

static void serve(struct trial *trial)
{
        connect_all(trial);
        trial->rig.pause = faults_pause;
        rig_until(&trial->rig, are_done, trial);
        trial->rig.pause = NULL;
        faults_disarm();
        client_ask(&trial->rig, "GET /now HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200 ");
        for (uint32_t i = 0; i < trial->count; i++)
                client_close(&trial->clients[i]);
        rig_until_open(&trial->rig, 0);
        assert_int_equal(rig_counts(&trial->rig).body_bytes, 0);
        if (trial->rig.held_count && !trial->finished)
                assert_null(trial->rig.held[0]); /* on_gone() was called */
}

/* True: the fault came; there are at most so many calls. */
static bool try(enum fault_kind kind, uint32_t first, uint32_t count, uint32_t flavour)
{
        const struct fault_plan plan = {
                .kind = kind, .first = first, .count = count, .flavour = flavour
        };
        struct trial trial = { .count = 0 };
        char why[300] = "";
        int r;

        rig_init(&trial.rig);
        trial.rig.conf.key_file = key_file;
        rig_make_loop(&trial.rig);
        faults_arm(&plan);
        r = listen_all(&trial.rig, why, sizeof(why));
        faults_pause(true);
        if (!r)
                serve(&trial);
        else
                assert_true(why[0]);
        faults_disarm();
        rig_end(&trial.rig);
        return faults_failed();
}

static void sweep(enum fault_kind kind, uint32_t count, uint32_t flavours)
{
        for (uint32_t flavour = 0; flavour < flavours; flavour++) {
                uint32_t n = 0;

                while (try(kind, n, count, flavour))
                        n++;
                assert_true(n > 50); /* the faults do come */
        }
}

static void keeps_its_promise_when_one_allocation_fails(void **state)
{
        (void)state;
        sweep(FAULT_ALLOC, 1, 1);
}

static void keeps_its_promise_when_all_allocations_fail_for_a_while(void **state)
{
        (void)state;
        sweep(FAULT_ALLOC, 7, 1);
}

static void keeps_its_promise_when_one_system_call_fails(void **state)
{
        (void)state;
        sweep(FAULT_CALL, 1, 2);
}

static void keeps_its_promise_when_system_calls_fail_for_a_while(void **state)
{
        (void)state;
        sweep(FAULT_CALL, 5, 2);
}

static int set_up(void **state)
{
        FILE *file;

        (void)state;
        strcpy(folder, "/tmp/samovar-http-XXXXXX");
        assert_non_null(mkdtemp(folder));
        snprintf(key_file, sizeof(key_file), "%s/keys", folder);
        snprintf(socket_path, sizeof(socket_path), "%s/sock", folder);
        file = fopen(key_file, "w");
        assert_non_null(file);
        fputs("0123456789abcdef alice\n", file);
        fclose(file);
        return chmod(key_file, 0600);
}

static int tear_down(void **state)
{
        char lock[96];

        (void)state;
        snprintf(lock, sizeof(lock), "%s.lock", socket_path);
        unlink(lock);
        unlink(key_file);
        unlink(socket_path); /* one that could not be removed */
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keeps_its_promise_when_one_allocation_fails),
                cmocka_unit_test(keeps_its_promise_when_all_allocations_fail_for_a_while),
                cmocka_unit_test(keeps_its_promise_when_one_system_call_fails),
                cmocka_unit_test(keeps_its_promise_when_system_calls_fail_for_a_while),
        };

        faults_begin();
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
