/*
 * The listeners of the HTTP server: where they listen, whose place a path is, and what they do
 * without free descriptors.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "tests/unit/http-rig.h"

#define NOW "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"

struct world {
        struct rig rig;
        char folder[64], socket[80], lock[96], why[300];
};

static int set_up(void **state)
{
        struct world *world = calloc(1, sizeof(*world));

        rig_init(&world->rig);
        strcpy(world->folder, "/tmp/samovar-http-XXXXXX");
        assert_non_null(mkdtemp(world->folder));
        snprintf(world->socket, sizeof(world->socket), "%s/sock", world->folder);
        snprintf(world->lock, sizeof(world->lock), "%s/sock.lock", world->folder);
        assert_int_equal(rig_make(&world->rig, world->why, sizeof(world->why)), 0);
        *state = world;
        return 0;
}

static int tear_down(void **state)
{
        struct world *world = *state;

        rig_end(&world->rig);
        unlink(world->lock);
        assert_int_equal(rmdir(world->folder), 0);
        free(world);
        return 0;
}

static int listen_tcp(struct world *world, const char *address)
{
        return http_server_listen_tcp(world->rig.server, address, &world->rig.port, world->why,
                                      sizeof(world->why));
}

static int listen_unix(struct world *world, unsigned mode)
{
        return http_server_listen_unix(world->rig.server, world->socket, mode, world->why,
                                       sizeof(world->why));
}

static int listen_fd(struct world *world, int fd)
{
        return http_server_listen_fd(world->rig.server, fd, world->why, sizeof(world->why));
}

static void connect_unix(struct world *world, struct client *client)
{
        *client = (struct client){ .rig = &world->rig, .fd = sys_socket_unix() };
        assert_int_equal(sys_connect_unix(client->fd, world->socket), 0);
}

static void ask_unix(struct world *world)
{
        struct client client;

        connect_unix(world, &client);
        client_send(&client, NOW);
        client_until(&client, "now");
        client_close(&client);
}

static void refuses_what_is_no_address(void **state)
{
        static const char *const texts[] = { "",          "8080",        "localhost:8080",
                                             "127.0.0.1", "127.1:80",    "::1:80",
                                             "[::1]",     "[::1]:65536", "127.0.0.1:80x" };
        struct world *world = *state;

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                assert_int_equal(listen_tcp(world, texts[i]), -EINVAL);
                assert_non_null(strstr(world->why, "is no address to listen at"));
        }
}

static void says_that_a_port_is_taken(void **state)
{
        struct world *world = *state;
        char address[32];

        assert_int_equal(listen_tcp(world, "127.0.0.1:0"), 0);
        snprintf(address, sizeof(address), "127.0.0.1:%u", world->rig.port);
        assert_int_equal(listen_tcp(world, address), -EADDRINUSE);
        assert_memory_equal(world->why, "cannot listen at 127.0.0.1:", 27);
        client_ask(&world->rig, NOW, "HTTP/1.1 200 ");
}

static void a_unix_socket_has_its_mode_and_goes_with_the_server(void **state)
{
        struct world *world = *state;
        struct stat file;

        assert_int_equal(listen_unix(world, 0660), 0);
        assert_int_equal(stat(world->socket, &file), 0);
        assert_int_equal(file.st_mode & 0777, 0660);
        assert_int_equal(stat(world->lock, &file), 0);
        assert_int_equal(file.st_mode & 0777, 0600);
        ask_unix(world);
        http_server_stop(world->rig.server);
        assert_int_equal(access(world->socket, F_OK), -1);
        assert_int_equal(access(world->lock, F_OK), 0);
}

static void two_servers_cannot_have_one_path(void **state)
{
        struct world *world = *state;

        assert_int_equal(listen_unix(world, 0600), 0);
        assert_int_equal(listen_unix(world, 0600), -EADDRINUSE);
        assert_non_null(strstr(world->why, "is in use by another server"));
        ask_unix(world);
}

static void takes_the_place_of_a_socket_that_was_left(void **state)
{
        struct world *world = *state;
        int fd = sys_socket_unix();

        assert_int_equal(sys_bind_unix(fd, world->socket, 0600), 0);
        close(fd);
        assert_int_equal(listen_unix(world, 0600), 0);
        ask_unix(world);
}

static void leaves_another_file_alone(void **state)
{
        struct world *world = *state;
        int fd = open(world->socket, O_CREAT | O_WRONLY, 0600);

        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(listen_unix(world, 0600), -EEXIST);
        assert_non_null(strstr(world->why, "a file that is not a socket"));
        assert_int_equal(unlink(world->socket), 0);
}

/* Another server may have been started at the path by hand. */
static void leaves_a_socket_that_took_its_place(void **state)
{
        struct world *world = *state;
        int fd = sys_socket_unix();

        assert_int_equal(listen_unix(world, 0600), 0);
        assert_int_equal(unlink(world->socket), 0);
        assert_int_equal(sys_bind_unix(fd, world->socket, 0600), 0);
        http_server_stop(world->rig.server);
        assert_int_equal(unlink(world->socket), 0);
        close(fd);
}

static void refuses_a_path_that_is_too_long(void **state)
{
        struct world *world = *state;
        char path[200];

        memset(path, 'x', sizeof(path));
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(http_server_listen_unix(world->rig.server, path, 0600, world->why,
                                                 sizeof(world->why)),
                         -ENAMETOOLONG);
        assert_string_equal(world->why,
                            "the path of a socket has 199 bytes; it must have 1 to 107");
}

static int tcp_listener(uint32_t address, uint16_t *ret_port)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
        socklen_t bytes = sizeof(at);
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(fd, 5), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
        *ret_port = ntohs(at.sin_port);
        return fd;
}

static void serves_sockets_that_are_passed_to_it(void **state)
{
        struct world *world = *state;
        int fd = sys_socket_unix();

        assert_int_equal(sys_bind_unix(fd, world->socket, 0600), 0);
        assert_int_equal(sys_listen(fd, 5), 0);
        assert_int_equal(listen_fd(world, fd), 0);
        ask_unix(world);
        fd = tcp_listener(INADDR_LOOPBACK, &world->rig.port);
        assert_int_equal(listen_fd(world, fd), 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        client_ask(&world->rig, NOW, "HTTP/1.1 200 ");
        http_server_stop(world->rig.server);
        assert_int_equal(unlink(world->socket), 0); /* its maker keeps it */
}

static void refuses_a_passed_descriptor_that_it_cannot_serve(void **state)
{
        struct world *world = *state;
        uint16_t port;
        int pair[2];

        assert_int_equal(listen_fd(world, open("/dev/null", O_RDONLY)), -ENOTSOCK);
        assert_non_null(strstr(world->why, "is no TCP or Unix stream socket that listens"));
        assert_int_equal(listen_fd(world, sys_socket_unix()), -EINVAL);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(listen_fd(world, pair[0]), -EINVAL);
        close(pair[1]);
        assert_int_equal(listen_fd(world, tcp_listener(INADDR_ANY, &port)), -EACCES);
        assert_non_null(strstr(world->why, "there is no key file"));
}

static struct rlimit limit_before;

/* So that no descriptor is free but those that the test opened before. */
static void use_up_descriptors(void)
{
        struct rlimit limit;
        int next = dup(0);

        assert_true(next >= 0);
        close(next);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
        limit = limit_before;
        limit.rlim_cur = (rlim_t)next;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static uint32_t accepts;

static int count_accepts(const char *call, void *arg)
{
        (void)arg;
        accepts += !strcmp(call, "accept");
        return 0;
}

static void tells_clients_that_no_descriptor_is_left(void **state)
{
        struct world *world = *state;
        struct client client;

        assert_int_equal(listen_tcp(world, "127.0.0.1:0"), 0);
        rig_turns(&world->rig, 2);
        client_connect(&world->rig, &client);
        use_up_descriptors();
        accepts = 0;
        sys_set_fault(count_accepts, NULL);
        client_until_end(&client);
        rig_turns(&world->rig, 20);
        sys_set_fault(NULL, NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
        assert_memory_equal(client.got, "HTTP/1.1 503 ", 13);
        assert_true(client_has(&client, "Retry-After: 1\r\n"));
        assert_true(accepts <= 4); /* it does not spin */
        client_close(&client);
        client_ask(&world->rig, NOW, "HTTP/1.1 200 ");
        assert_int_equal(rig_counts(&world->rig).refusals[HTTP_OUT_OF_RESOURCES], 1);
}

struct failing {
        int error;
        uint32_t left, asked;
};

static int fail_accepts(const char *call, void *arg)
{
        struct failing *failing = arg;

        if (strcmp(call, "accept"))
                return 0;
        failing->asked++;
        if (!failing->left)
                return 0;
        failing->left--;
        return failing->error;
}

static void pauses_if_accepting_fails_and_goes_on(void **state)
{
        struct failing failing = { .error = -ENOMEM, .left = UINT32_MAX };
        struct world *world = *state;
        struct client client;
        uint64_t begin_ns;

        assert_int_equal(listen_tcp(world, "127.0.0.1:0"), 0);
        client_connect(&world->rig, &client);
        begin_ns = sys_clock_ns();
        sys_set_fault(fail_accepts, &failing);
        rig_turns(&world->rig, 30);
        /* At most once in each pause of 100 ms; without pauses, in each turn. */
        assert_in_range(failing.asked, 1, 2 + (sys_clock_ns() - begin_ns) / 100000000);
        failing.left = 2;
        client_send(&client, NOW);
        client_until(&client, "now");
        sys_set_fault(NULL, NULL);
        client_close(&client);
}

static void a_connection_that_ended_early_does_not_pause_the_others(void **state)
{
        struct failing failing = { .error = -ECONNABORTED, .left = 40 };
        struct world *world = *state;

        assert_int_equal(listen_tcp(world, "127.0.0.1:0"), 0);
        sys_set_fault(fail_accepts, &failing);
        client_ask(&world->rig, NOW, "HTTP/1.1 200 ");
        sys_set_fault(NULL, NULL);
        assert_int_equal(failing.left, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(refuses_what_is_no_address),
                TEST(says_that_a_port_is_taken),
                TEST(a_unix_socket_has_its_mode_and_goes_with_the_server),
                TEST(two_servers_cannot_have_one_path),
                TEST(takes_the_place_of_a_socket_that_was_left),
                TEST(leaves_another_file_alone),
                TEST(leaves_a_socket_that_took_its_place),
                TEST(refuses_a_path_that_is_too_long),
                TEST(serves_sockets_that_are_passed_to_it),
                TEST(refuses_a_passed_descriptor_that_it_cannot_serve),
                TEST(tells_clients_that_no_descriptor_is_left),
                TEST(pauses_if_accepting_fails_and_goes_on),
                TEST(a_connection_that_ended_early_does_not_pause_the_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
