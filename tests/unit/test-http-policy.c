/*
 * The policy of the HTTP server: hosts, origins, keys, and users.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bridge/http/keys.h"
#include "bridge/http/peer-user.h"
#include "base/sys.h"
#include "tests/skip.h"
#include "tests/unit/http-rig.h"

#define KEY_A "sk-alice-0123456789"
#define KEY_B "sk-bob-9876543210-longer"
#define KEY_C "sk-alice-second-key"

struct world {
        struct rig rig;
        char folder[64], key_file[80], socket[80];
};

static int set_up(void **state)
{
        struct world *world = calloc(1, sizeof(*world));

        rig_init(&world->rig);
        strcpy(world->folder, "/tmp/samovar-http-XXXXXX");
        assert_non_null(mkdtemp(world->folder));
        snprintf(world->key_file, sizeof(world->key_file), "%s/keys", world->folder);
        snprintf(world->socket, sizeof(world->socket), "%s/sock", world->folder);
        *state = world;
        return 0;
}

static int tear_down(void **state)
{
        struct world *world = *state;
        char lock[96];

        if (world->rig.loop)
                rig_end(&world->rig);
        snprintf(lock, sizeof(lock), "%s.lock", world->socket);
        unlink(lock);
        unlink(world->key_file);
        assert_int_equal(rmdir(world->folder), 0);
        free(world);
        return 0;
}

static void write_keys(struct world *world, const char *text, unsigned mode)
{
        FILE *file = fopen(world->key_file, "w");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        assert_int_equal(chmod(world->key_file, mode), 0);
}

static void start_with_keys(struct world *world)
{
        write_keys(world,
                   "# users\n\n" KEY_A " alice\n" KEY_B "\t bob \n  " KEY_C " alice\r\n#" KEY_A
                   " eve\n",
                   0600);
        world->rig.conf.key_file = world->key_file;
        rig_start(&world->rig);
}

/* The answer to one request, whole; the caller frees it. */
static char *ask(struct rig *rig, const char *request)
{
        struct client client;
        char *got;

        client_connect(rig, &client);
        client_send(&client, request);
        client_until_end(&client);
        got = strdup(client.got ? client.got : "");
        client_close(&client);
        return got;
}

static void check(struct rig *rig, const char *line, const char *headers, const char *expected)
{
        char request[2048];

        snprintf(request, sizeof(request), "%s HTTP/1.1\r\nConnection: close\r\n%s\r\n", line,
                 headers);
        client_ask(rig, request, expected);
}

#define OK        "HTTP/1.1 200 "
#define DENIED    "HTTP/1.1 403 "
#define WRONG_KEY "HTTP/1.1 401 "

static void serves_local_and_configured_hosts_only(void **state)
{
        static const char *const hosts[] = { "chat.example", "192.168.1.5", NULL };
        static const char *const good[] = { "localhost",    "localhost:1",  "LOCALHOST",
                                            "ui.localhost", "127.0.0.1:80", "127.9.9.9",
                                            "[::1]:5",      "chat.example", "Chat.Example:8080",
                                            "192.168.1.5" };
        static const char *const bad[] = { "evil.example",    "localhost.evil", "chat.example.evil",
                                           "xchat.example",   "192.168.1.6",    "0.0.0.0",
                                           "127.0.0.1.nip.io" };
        struct world *world = *state;
        char header[128], *got;

        world->rig.conf.hosts = hosts;
        rig_start(&world->rig);
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                snprintf(header, sizeof(header), "Host: %s\r\n", good[i]);
                check(&world->rig, "GET /now", header, OK);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                snprintf(header, sizeof(header), "Host: %s\r\n", bad[i]);
                check(&world->rig, "GET /now", header, DENIED);
                assert_memory_equal(world->rig.refusal, "denied_host ", 12);
        }
        got = ask(&world->rig, "GET /now HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n"
                               "Origin: http://localhost\r\n\r\n");
        assert_memory_equal(got, DENIED, strlen(DENIED));
        assert_null(strstr(got, "Access-Control")); /* the page cannot read why */
        free(got);
        check(&world->rig, "GET http://evil.example/now", "Host: evil.example\r\n", DENIED);
        check(&world->rig, "GET http://localhost/now", "Host: localhost\r\n", OK);
        client_ask(&world->rig, "GET /now HTTP/1.0\r\n\r\n", OK);
        assert_int_equal(rig_counts(&world->rig).refusals[HTTP_DENIED_HOST],
                         sizeof(bad) / sizeof(*bad) + 2);
}

static void pages_of_other_sites_may_not_ask(void **state)
{
        static const char *const origins[] = { "https://chat.example", "app://obsidian.md", NULL };
        static const char *const good[] = { "http://localhost",       "http://localhost:3000",
                                            "https://localhost:1",    "http://127.0.0.1:5",
                                            "http://[::1]:5",         "http://a.localhost",
                                            "https://chat.example",   "app://obsidian.md",
                                            "http://own.example:8080" };
        static const char *const bad[] = { "null",
                                           "http://evil.example",
                                           "http://chat.example",
                                           "https://chat.example:444",
                                           "https://chat.example.evil",
                                           "http://own.example",
                                           "http://own.example:8081",
                                           "app://localhost",
                                           "http://localhost@evil.example",
                                           "http://localhost http://evil.example",
                                           "*",
                                           "" };
        static const char *const hosts[] = { "own.example", NULL };
        struct world *world = *state;
        char header[160], expected[160], *got;

        world->rig.conf.hosts = hosts;
        world->rig.conf.origins = origins;
        rig_start(&world->rig);
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                snprintf(header, sizeof(header),
                         "GET /now HTTP/1.1\r\nHost: own.example:8080\r\nConnection: close\r\n"
                         "Origin: %s\r\n\r\n",
                         good[i]);
                snprintf(expected, sizeof(expected), "\r\nAccess-Control-Allow-Origin: %s\r\n",
                         good[i]);
                got = ask(&world->rig, header);
                assert_memory_equal(got, OK, strlen(OK));
                assert_non_null(strstr(got, expected));
                assert_non_null(strstr(got, "\r\nVary: Origin\r\n"));
                assert_non_null(strstr(got, "\r\nAccess-Control-Expose-Headers: x-request-id, "
                                            "request-id, retry-after, x-samovar-stream-id, "
                                            "x-samovar-queue-position\r\n"));
                assert_null(strstr(got, "Credentials"));
                free(got);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                snprintf(header, sizeof(header),
                         "POST /now HTTP/1.1\r\nHost: own.example:8080\r\nConnection: close\r\n"
                         "Origin: %s\r\n\r\n",
                         bad[i]);
                got = ask(&world->rig, header);
                assert_memory_equal(got, DENIED, strlen(DENIED));
                assert_null(strstr(got, "Access-Control"));
                assert_non_null(strstr(got, "\r\nVary: Origin\r\n"));
                free(got);
                if (i == 0)
                        assert_non_null(strstr(world->rig.refusal, "it is a file"));
        }
}

static void all_origins_may_be_allowed_but_never_null(void **state)
{
        static const char *const origins[] = { "*", NULL };
        struct world *world = *state;
        char *got;

        world->rig.conf.origins = origins;
        rig_start(&world->rig);
        got = ask(&world->rig, "GET /now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               "Origin: https://any.example\r\n\r\n");
        assert_non_null(strstr(got, "\r\nAccess-Control-Allow-Origin: *\r\n"));
        free(got);
        check(&world->rig, "GET /now", "Host: localhost\r\nOrigin: null\r\n", DENIED);
}

static void errors_have_the_headers_that_pages_need(void **state)
{
        struct world *world = *state;
        char *got;

        start_with_keys(world);
        got = ask(&world->rig, "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                               "Origin: http://localhost:3000\r\n"
                               "Content-Type: application/json\r\nx-api-key: " KEY_A "\r\n"
                               "Content-Length: 99999999\r\n\r\n");
        assert_memory_equal(got, "HTTP/1.1 413 ", 13);
        assert_non_null(strstr(got, "Access-Control-Allow-Origin: http://localhost:3000\r\n"));
        free(got);
        got = ask(&world->rig, "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               "Origin: http://localhost:3000\r\n\r\n");
        assert_memory_equal(got, WRONG_KEY, strlen(WRONG_KEY));
        assert_non_null(strstr(got, "Access-Control-Allow-Origin: http://localhost:3000\r\n"));
        assert_non_null(strstr(got, "WWW-Authenticate: Bearer\r\n"));
        free(got);
}

static void answers_a_preflight_without_a_key(void **state)
{
        struct world *world = *state;
        char *got;

        start_with_keys(world);
        got = ask(&world->rig,
                  "OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Origin: http://localhost:3000\r\n"
                  "Access-Control-Request-Method: POST\r\n"
                  "Access-Control-Request-Headers: Authorization,content-type, x-evil, "
                  "x-stainless-os, x-stainless-\r\n\r\n");
        assert_memory_equal(got, "HTTP/1.1 204 No Content\r\n", 25);
        assert_non_null(strstr(got, "\r\nAccess-Control-Allow-Origin: http://localhost:3000\r\n"));
        assert_non_null(strstr(got, "\r\nAccess-Control-Allow-Headers: Authorization, "
                                    "content-type, x-stainless-os\r\n"));
        assert_non_null(strstr(got, "\r\nAccess-Control-Allow-Methods: GET, HEAD, POST, PUT, "
                                    "PATCH, DELETE, OPTIONS\r\n"));
        assert_non_null(strstr(got, "\r\nAccess-Control-Max-Age: 86400\r\n"));
        assert_null(strstr(got, "Content-Length"));
        free(got);
        got = ask(&world->rig, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               "Access-Control-Request-Headers: x\r\n\r\n");
        assert_memory_equal(got, "HTTP/1.1 204 ", 13);
        assert_non_null(strstr(got, "\r\nAllow: GET, "));
        assert_null(strstr(got, "Access-Control"));
        free(got);
        check(&world->rig, "OPTIONS /", "Host: localhost\r\nOrigin: http://evil\r\n", DENIED);
        check(&world->rig, "OPTIONS /", "Host: evil\r\n", DENIED);
}

static void a_page_must_send_json(void **state)
{
        static const struct {
                const char *headers, *expected;
        } cases[] = {
                { "Content-Length: 0\r\nOrigin: http://localhost\r\n", OK },
                { "Content-Length: 2\r\n\r\n{}", OK },
                { "Content-Length: 2\r\nOrigin: http://localhost\r\n\r\n{}", "HTTP/1.1 415 " },
                { "Content-Length: 2\r\nOrigin: http://localhost\r\nContent-Type: text/plain\r\n"
                  "\r\n{}",
                  "HTTP/1.1 415 " },
                { "Content-Length: 2\r\nOrigin: http://localhost\r\n"
                  "Content-Type: application/jsonx\r\n\r\n{}",
                  "HTTP/1.1 415 " },
                { "Content-Length: 2\r\nOrigin: http://localhost\r\n"
                  "Content-Type: Application/JSON; charset=utf-8\r\n\r\n{}",
                  OK },
        };
        struct world *world = *state;

        rig_start(&world->rig);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char request[512];

                snprintf(request, sizeof(request), "POST /echo HTTP/1.1\r\nHost: localhost\r\n%s%s",
                         cases[i].headers, strstr(cases[i].headers, "\r\n\r\n") ? "" : "\r\n");
                client_ask(&world->rig, request, cases[i].expected);
        }
}

static void a_key_says_which_principal_asks(void **state)
{
        static const struct {
                const char *header, *expected, *name;
        } cases[] = {
                { "Authorization: Bearer " KEY_A "\r\n", OK, "alice" },
                { "authorization: bearer  " KEY_B "\r\n", OK, "bob" },
                { "x-api-key: " KEY_B "\r\n", OK, "bob" },
                { "X-Api-Key: " KEY_C "\r\n", OK, "alice" },
                { "", WRONG_KEY, NULL },
                { "Authorization: Bearer " KEY_A "x\r\n", WRONG_KEY, NULL },
                { "Authorization: Bearer " KEY_A KEY_A "\r\n", WRONG_KEY, NULL },
                { "Authorization: Bearer sk-alice-012345678\r\n", WRONG_KEY, NULL },
                { "Authorization: Bearer \r\n", WRONG_KEY, NULL },
                { "Authorization: Basic " KEY_A "\r\n", WRONG_KEY, NULL },
                { "Authorization: " KEY_A "\r\n", WRONG_KEY, NULL },
                { "x-api-key:\r\n", WRONG_KEY, NULL },
                { "x-api-key: SK-ALICE-0123456789\r\n", WRONG_KEY, NULL },
        };
        struct world *world = *state;
        char header[256];

        start_with_keys(world);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                snprintf(header, sizeof(header), "Host: localhost\r\n%s", cases[i].header);
                check(&world->rig, "GET /now", header, cases[i].expected);
                if (cases[i].name)
                        assert_string_equal(
                                http_server_principal(world->rig.server, world->rig.principal),
                                cases[i].name);
        }
        assert_null(http_server_principal(world->rig.server, 0));
        assert_null(http_server_principal(world->rig.server, 3));
}

static void the_page_and_the_health_are_open(void **state)
{
        struct world *world = *state;

        start_with_keys(world);
        check(&world->rig, "GET /", "Host: localhost\r\n", "HTTP/1.1 404 "); /* by the program */
        check(&world->rig, "HEAD /health", "Host: localhost\r\n", "HTTP/1.1 404 ");
        check(&world->rig, "GET /page/x", "Host: localhost\r\n", "HTTP/1.1 404 ");
        assert_int_equal(world->rig.requests, 3);
        check(&world->rig, "POST /page/x", "Host: localhost\r\n", WRONG_KEY);
        check(&world->rig, "GET /page", "Host: localhost\r\n", WRONG_KEY);
        check(&world->rig, "GET /page/x", "Host: evil\r\n", DENIED);
        check(&world->rig, "POST /health", "Host: localhost\r\n", WRONG_KEY);
        check(&world->rig, "GET /health/x", "Host: localhost\r\n", WRONG_KEY);
        check(&world->rig, "GET //", "Host: localhost\r\n", WRONG_KEY);
        check(&world->rig, "GET /health", "Host: evil\r\n", DENIED);
}

static void reads_the_keys_again(void **state)
{
        struct world *world = *state;
        uint32_t bob;
        char why[300];

        start_with_keys(world);
        check(&world->rig, "GET /now", "Host: localhost\r\nx-api-key: " KEY_B "\r\n", OK);
        bob = world->rig.principal;
        write_keys(world, "0123456789abcdef carol\n" KEY_B " bob\n", 0600);
        assert_int_equal(http_server_reload_keys(world->rig.server, why, sizeof(why)), 0);
        check(&world->rig, "GET /now", "Host: localhost\r\nx-api-key: " KEY_A "\r\n", WRONG_KEY);
        check(&world->rig, "GET /now", "Host: localhost\r\nx-api-key: " KEY_B "\r\n", OK);
        assert_int_equal(world->rig.principal, bob); /* a name keeps its number */
        check(&world->rig, "GET /now", "Host: localhost\r\nx-api-key: 0123456789abcdef\r\n", OK);
        assert_string_equal(http_server_principal(world->rig.server, world->rig.principal),
                            "carol");
        write_keys(world, "short dave\n", 0600);
        assert_int_equal(http_server_reload_keys(world->rig.server, why, sizeof(why)), -EINVAL);
        check(&world->rig, "GET /now", "Host: localhost\r\nx-api-key: " KEY_B "\r\n", OK);
}

static void refuses_key_files_that_are_open_or_damaged(void **state)
{
        static const struct {
                const char *text;
                unsigned mode;
                int error;
                const char *why;
        } cases[] = {
                { KEY_A " alice\n", 0644, -EPERM, "its mode is 0644" },
                { KEY_A " alice\n", 0604, -EPERM, "its mode is 0604" },
                { KEY_A " alice\n", 0660, -EPERM, "its mode is 0660" },
                { "", 0600, -EINVAL, "it has no keys" },
                { "# none\n", 0600, -EINVAL, "it has no keys" },
                { "\nshort alice\n", 0600, -EINVAL, "line 2: a key must have 16" },
                { KEY_A "\n", 0600, -EINVAL, "line 1: it must be KEY NAME" },
                { KEY_A " al ice\n", 0600, -EINVAL, "line 1: it must be KEY NAME" },
                { KEY_A " al:ice\n", 0600, -EINVAL, "line 1: it must be KEY NAME" },
                { KEY_A " a\n" KEY_A " b\n", 0600, -EEXIST, "line 2: the key stands there twice" },
        };
        struct world *world = *state;
        struct http_keys *keys;
        char why[300];

        assert_int_equal(http_keys_new(&keys), 0);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                write_keys(world, cases[i].text, cases[i].mode);
                assert_int_equal(http_keys_read(keys, world->key_file, why, sizeof(why)),
                                 cases[i].error);
                assert_non_null(strstr(why, cases[i].why));
                assert_non_null(strstr(why, world->key_file));
                assert_null(strstr(why, KEY_A));
        }
        write_keys(world, KEY_A " a", 0640);
        assert_int_equal(http_keys_read(keys, world->key_file, why, sizeof(why)), 0);
        assert_int_equal(http_keys_find(keys, KEY_A, strlen(KEY_A)), 1);
        assert_int_equal(http_keys_read(keys, world->folder, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "not a regular file"));
        assert_int_equal(http_keys_read(keys, "/nonexistent", why, sizeof(why)), -ENOENT);
        http_keys_free(keys);
        world->rig.conf.key_file = "/nonexistent";
        assert_int_equal(rig_make(&world->rig, why, sizeof(why)), -ENOENT);
}

static void refuses_a_key_file_of_another_user(void **state)
{
        struct world *world = *state;
        struct http_keys *keys;
        char why[300];

        if (geteuid())
                skip_because("only root can give a file to another user");
        assert_int_equal(http_keys_new(&keys), 0);
        write_keys(world, KEY_A " a", 0600);
        assert_int_equal(chown(world->key_file, 12345, 0), 0);
        assert_int_equal(http_keys_read(keys, world->key_file, why, sizeof(why)), -EPERM);
        assert_non_null(strstr(why, "belongs to uid 12345"));
        http_keys_free(keys);
}

static void other_machines_need_keys(void **state)
{
        struct world *world = *state;
        char why[300];
        static const char *const addresses[] = { "0.0.0.0:0", "[::]:0", "192.0.2.1:0" };

        assert_int_equal(rig_make(&world->rig, why, sizeof(why)), 0);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(http_server_listen_tcp(world->rig.server, addresses[i], NULL, why,
                                                        sizeof(why)),
                                 -EACCES);
                assert_non_null(strstr(why, "no loopback address, and there is no key file"));
        }
}

/* As another user in a process of its own, or as us: sends the request, exits with the status. */
static pid_t ask_as(struct world *world, uid_t uid, const char *unix_path)
{
        static const char request[] =
                "GET /now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        pid_t child = fork();
        struct client client = { 0 };
        char got[64] = { 0 };

        assert_true(child >= 0);
        if (child)
                return child;
        if (setgid(uid) || setuid(uid))
                _exit(99);
        if (unix_path) {
                client.fd = sys_socket_unix();
                if (sys_connect_unix(client.fd, unix_path))
                        _exit(98);
        } else {
                client_connect(&world->rig, &client);
        }
        fcntl(client.fd, F_SETFL, 0);
        if (write(client.fd, request, sizeof(request) - 1) < 0 ||
            recv(client.fd, got, sizeof(got) - 1, MSG_WAITALL) < 13)
                _exit(97);
        _exit(atoi(got + 9) - 200);
}

static bool has_exited(struct rig *rig, void *arg)
{
        int *status = arg;
        pid_t child = waitpid(-1, status, WNOHANG);

        (void)rig;
        return child > 0;
}

static int status_as(struct world *world, uid_t uid, const char *unix_path)
{
        int status = 0;

        (void)ask_as(world, uid, unix_path);
        rig_until(&world->rig, has_exited, &status);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status) + 200;
}

static void without_keys_only_the_own_user_may_ask(void **state)
{
        struct world *world = *state;
        static const uint32_t uids[] = { 12346 };

        if (geteuid())
                skip_because("only root can ask as other users");
        world->rig.conf.uids = uids;
        world->rig.conf.uid_count = 1;
        rig_start(&world->rig);
        assert_int_equal(status_as(world, 0, NULL), 200);
        assert_int_equal(status_as(world, 12345, NULL), 403);
        assert_true(strstr(world->rig.refusal, "only processes of uid 0") != NULL);
        assert_int_equal(status_as(world, 12346, NULL), 200);
}

static void a_unix_socket_tells_which_user_asks(void **state)
{
        struct world *world = *state;
        char why[300];

        if (geteuid())
                skip_because("only root can ask as other users");
        start_with_keys(world);
        assert_int_equal(chmod(world->folder, 0755), 0);
        assert_int_equal(
                http_server_listen_unix(world->rig.server, world->socket, 0666, why, sizeof(why)),
                0);
        assert_int_equal(status_as(world, 0, world->socket), 200);
        assert_int_equal(status_as(world, 12345, world->socket), 401);
        assert_int_equal(status_as(world, 0, NULL), 401); /* over TCP, a key is needed */
}

static void a_unix_socket_may_be_open_to_all(void **state)
{
        struct world *world = *state;
        char why[300];

        if (geteuid())
                skip_because("only root can ask as other users");
        world->rig.conf.unix_everyone = true;
        rig_start(&world->rig);
        assert_int_equal(chmod(world->folder, 0755), 0);
        assert_int_equal(
                http_server_listen_unix(world->rig.server, world->socket, 0666, why, sizeof(why)),
                0);
        assert_int_equal(status_as(world, 12345, world->socket), 200);
        assert_int_equal(status_as(world, 12345, NULL), 403);
}

/* Its line in the kernel's table is without an owner, and looks like one of root's. */
static void a_closed_socket_is_not_taken_for_one_of_root(void **state)
{
        struct world *world = *state;
        struct sockaddr_storage at = { 0 };
        struct client client;
        uint32_t uid;
        int listener = sys_socket_tcp(AF_INET), fd;

        ((struct sockaddr_in *)(void *)&at)->sin_family = AF_INET;
        ((struct sockaddr_in *)(void *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(sys_bind(listener, &at), 0);
        assert_int_equal(sys_listen(listener, 1), 0);
        assert_int_equal(sys_socket_ends(listener, &at, NULL), 0);
        world->rig.port = ntohs(((struct sockaddr_in *)(void *)&at)->sin_port);
        client_connect(&world->rig, &client);
        fd = sys_accept(listener);
        assert_true(fd >= 0);
        assert_int_equal(http_peer_user(fd, false, &uid), 0);
        assert_int_equal(uid, geteuid());
        client_close(&client);
        assert_int_equal(http_peer_user(fd, false, &uid), -ENOENT);
        close(fd);
        close(listener);
}

static void finds_the_user_of_both_kinds_of_addresses(void **state)
{
        static const struct {
                const char *listen, *connect;
                int family;
        } cases[] = {
                { "127.0.0.1", "127.0.0.1", AF_INET },
                { "127.0.0.1", "::ffff:127.0.0.1", AF_INET6 },
                { "::1", "::1", AF_INET6 },
        };

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                bool v6 = strchr(cases[i].listen, ':');
                struct sockaddr_in v4 = { .sin_family = AF_INET };
                struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
                struct sockaddr_storage at = { 0 };
                uint32_t uid = 12345;
                int listener, fd, client;

                inet_pton(AF_INET, cases[i].listen, &v4.sin_addr);
                inet_pton(AF_INET6, cases[i].listen, &to.sin6_addr);
                memcpy(&at, v6 ? (void *)&to : (void *)&v4, v6 ? sizeof(to) : sizeof(v4));
                listener = sys_socket_tcp(v6 ? AF_INET6 : AF_INET);
                if (listener < 0 || sys_bind(listener, &at)) {
                        assert_true(v6); /* this machine has no IPv6 */
                        sys_close(listener);
                        continue;
                }
                assert_int_equal(sys_listen(listener, 1), 0);
                assert_int_equal(sys_socket_ends(listener, &at, NULL), 0);
                v4 = *(struct sockaddr_in *)(void *)&at; /* the port lies at the same place */
                inet_pton(AF_INET, cases[i].connect, &v4.sin_addr);
                to.sin6_port = v4.sin_port;
                inet_pton(AF_INET6, cases[i].connect, &to.sin6_addr);
                client = socket(cases[i].family, SOCK_STREAM, 0);
                assert_int_equal(connect(client,
                                         cases[i].family == AF_INET6 ? (struct sockaddr *)&to
                                                                     : (struct sockaddr *)&v4,
                                         cases[i].family == AF_INET6 ? sizeof(to) : sizeof(v4)),
                                 0);
                fd = sys_accept(listener);
                assert_int_equal(http_peer_user(fd, false, &uid), 0);
                assert_int_equal(uid, geteuid());
                close(fd);
                close(client);
                close(listener);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(serves_local_and_configured_hosts_only),
                TEST(pages_of_other_sites_may_not_ask),
                TEST(all_origins_may_be_allowed_but_never_null),
                TEST(errors_have_the_headers_that_pages_need),
                TEST(answers_a_preflight_without_a_key),
                TEST(a_page_must_send_json),
                TEST(a_key_says_which_principal_asks),
                TEST(the_page_and_the_health_are_open),
                TEST(reads_the_keys_again),
                TEST(refuses_key_files_that_are_open_or_damaged),
                TEST(refuses_a_key_file_of_another_user),
                TEST(other_machines_need_keys),
                TEST(without_keys_only_the_own_user_may_ask),
                TEST(a_unix_socket_tells_which_user_asks),
                TEST(a_unix_socket_may_be_open_to_all),
                TEST(a_closed_socket_is_not_taken_for_one_of_root),
                TEST(finds_the_user_of_both_kinds_of_addresses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
