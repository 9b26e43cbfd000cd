/* Makes and closes a client: finds the socket, connects, and sends hello. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon-address.h"
#include "client/names.h"
#include "client/request.h"

#define CONNECT_MS 10000
/*
 * The longest that connecting waits before it tries again, unless the daemon asks for more: if the
 * daemon refuses the connection, and if there is none that could.
 */
#define WAIT_MS_MAX        1000u
#define WAIT_MS_SOCKET_MAX 100u
#define WAIT_MS_MIN        10u
#define ENTRY_BYTES        16384u /* for an entry of the databases of users and groups */
/* If hello has no reply after this time, the caller is told why. */
#define SILENCE_MS 1000
/* The control socket of a daemon that stops answers sooner. */
#define CONTROL_MS 500

/* A smv_connect() that is in progress. */
struct attempt {
        struct smv_connect options;
        struct daemon_paths paths;
        size_t path; /* the index of the path where a daemon answered */
        uint64_t deadline;
        bool stopping; /* the daemon there has said that it stops: another one may follow it */
};

/* ---- the socket ---- */

static int refuse_uid(struct smv_client *client, const char *path, int64_t uid)
{
        if (uid < 0)
                return client_fail(client, (int)uid,
                                   "%s: cannot find out which user runs the daemon: %s", path,
                                   strerror((int)-uid));
        return client_fail(client, -EPERM,
                           "%s: the daemon runs as uid %lld, which is neither root nor our uid "
                           "%lld; root can trust it in " SMV_CLIENT_CONF
                           ", or any_uid (--any-uid) accepts it",
                           path, (long long)uid, (long long)geteuid());
}

/* The name of the group, or its number if it has none.  True: it has one. */
static bool name_group(gid_t gid, char *to, size_t bytes)
{
        struct group entry, *found = NULL;
        char members[ENTRY_BYTES];

        if (getgrgid_r(gid, &entry, members, sizeof(members), &found) || !found) {
                snprintf(to, bytes, "%u", (unsigned)gid);
                return false;
        }
        snprintf(to, bytes, "%s", found->gr_name);
        return true;
}

/* How root lets us in, if both our user and the group have a name. */
static void advise_group(const char *group, bool named, char *to, size_t bytes)
{
        struct passwd entry, *found = NULL;
        char user[ENTRY_BYTES];
        bool knows = named && !getpwuid_r(geteuid(), &entry, user, sizeof(user), &found) && found;

        snprintf(to, bytes, "; ask root to add you to it%s%s%s%s", knows ? ": usermod -aG " : "",
                 knows ? group : "", knows ? " " : "", knows ? found->pw_name : "");
}

static int refuse_access(struct smv_client *client, const char *path)
{
        struct stat file;
        char owner[32] = "", group[64] = "", name[33], advice[112] = "";
        bool shared;

        if (stat(path, &file))
                return client_fail(client, -EACCES, "%s: %s", path, strerror(EACCES));
        shared = file.st_mode & S_IWGRP;
        if (file.st_uid)
                snprintf(owner, sizeof(owner), "%s user %u", shared ? "," : " and",
                         (unsigned)file.st_uid);
        if (shared) {
                advise_group(name, name_group(file.st_gid, name, sizeof(name)), advice,
                             sizeof(advice));
                snprintf(group, sizeof(group), " and members of the group %s", name);
        }
        return client_fail(client, -EACCES, "%s: %s: only root%s%s may connect%s", path,
                           strerror(EACCES), owner, group, advice);
}

/* No daemon listens at the path.  With other errors there is one. */
static bool is_absent(int r)
{
        return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR;
}

/* The daemon at this path could not be reached. */
static int refuse_path(struct smv_client *client, const char *path, int r)
{
        struct stat file;

        if (r == -EACCES)
                return refuse_access(client, path);
        if (r == -EAGAIN)
                return client_fail(client, r,
                                   "%s: the daemon takes no connection, and its queue of new ones "
                                   "is full",
                                   path);
        if (r == -ECONNREFUSED && !stat(path, &file) && !S_ISSOCK(file.st_mode))
                return client_fail(client, r, "%s: it is not a socket", path);
        return client_fail(client, r, "%s: %s", path, strerror(-r));
}

/* No daemon is at any of the paths.  The message names all of them. */
static int refuse_paths(struct smv_client *client, const struct daemon_paths *paths, int r)
{
        if (paths->count == 2)
                return client_fail(client, r, "no daemon is at %s or %s: %s", paths->at[0],
                                   paths->at[1], strerror(-r));
        return refuse_path(client, paths->at[0], r);
}

static int dial_control(const char *path)
{
        char control[DAEMON_PATH_BYTES + sizeof(SMV_CONTROL_SUFFIX)];

        snprintf(control, sizeof(control), "%s%s", path, SMV_CONTROL_SUFFIX);
        return connection_dial(control);
}

static bool is_trusted(const struct attempt *attempt, int64_t uid)
{
        return attempt->options.any_uid ||
               (uid >= 0 && daemon_is_trusted(attempt->paths.at[attempt->path], (uint32_t)uid));
}

static int check_uid(struct smv_client *client, const struct attempt *attempt)
{
        int64_t uid = connection_peer_uid(&client->connection);

        return is_trusted(attempt, uid) ? 0
                                        : refuse_uid(client, attempt->paths.at[attempt->path], uid);
}

/*
 * A daemon that stops may have left its socket to the next one, and be at its control socket.  In
 * a folder of several users another one may have made that socket; then it does not count.
 */
static int dial(const struct attempt *attempt)
{
        const char *path = attempt->paths.at[attempt->path];
        int fd = attempt->options.while_stopping ? dial_control(path) : -ENOENT;
        struct connection control;

        if (fd < 0)
                return connection_dial(path);
        connection_init(&control, fd);
        if (is_trusted(attempt, connection_peer_uid(&control)))
                return fd;
        connection_deinit(&control);
        return connection_dial(path);
}

static int open_connection(struct smv_client *client, struct attempt *attempt)
{
        struct daemon_paths *paths = &attempt->paths;
        int fd = -ENAMETOOLONG;

        if (attempt->options.use_fd) {
                connection_init(&client->connection, attempt->options.fd);
                return 0;
        }
        if (!paths->count)
                return client_refuse(client, fd, "socket", "the socket's path is too long");
        for (size_t i = 0; i < paths->count; i++) {
                attempt->path = i;
                fd = dial(attempt);
                if (fd >= 0) {
                        connection_init(&client->connection, fd);
                        memcpy(client->socket, paths->at[i], sizeof(client->socket));
                        return check_uid(client, attempt);
                }
                if (!is_absent(fd))
                        return refuse_path(client, paths->at[i], fd);
        }
        return refuse_paths(client, paths, fd);
}

/* ---- hello ---- */

static void put_hello(struct codec_writer *writer, const struct smv_connect *options)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        static const char *const transports[] = { "auto", "ring", "socket" };
        static const char *const doorbells[] = { "kick", "futex", "none" };
        const char *transport = transports[options->transport];
        const char *doorbell = doorbells[options->doorbell];

        codec_put_ids(writer, "versions", versions, 2);
        if (options->while_stopping)
                codec_put_bool(writer, "while_stopping", true);
        if (options->principal)
                codec_put_text(writer, "principal", options->principal, strlen(options->principal));
        codec_put_text(writer, "transport", transport, strlen(transport));
        if (options->transport == SMV_TRANSPORT_SOCKET)
                return;
        codec_put_text(writer, "doorbell", doorbell, strlen(doorbell));
        if (options->ring_bytes)
                codec_put_uint(writer, "ring_bytes", options->ring_bytes);
        if (options->ask_slots)
                codec_put_uint(writer, "ask_slots", options->ask_slots);
        if (options->whole_rows)
                codec_put_bool(writer, "whole_rows", true);
}

/* Finds the segment of this kind, and the descriptor that came for it. */
static int find_segment(struct smv_client *client, const struct codec_frame *frame,
                        const char *kind, struct shared_segment *ret_segment)
{
        uint64_t index;
        int r;

        r = codec_get_segment(frame, kind, &index, &ret_segment->bytes);
        if (!r && index >= client->connection.fd_count)
                r = -EBADF;
        if (!r)
                ret_segment->fd = client->connection.fds[index];
        return r;
}

static int take_ring(struct smv_client *client, const struct codec_frame *frame,
                     enum smv_doorbell doorbell)
{
        struct shared_segment ring, control;
        const char *why;
        int r;

        r = find_segment(client, frame, "ring", &ring);
        if (!r)
                r = find_segment(client, frame, "control", &control);
        if (r == -EBADF)
                why = "its file descriptors did not arrive";
        else if (r)
                why = "the reply does not describe its segments";
        else
                r = shared_ring_open(&client->ring, &ring, &control, doorbell, &why);
        if (!r)
                return 0;
        client->ring_failed = true;
        return client_fail(client, r, "the daemon's ring cannot be used: %s", why);
}

/* The segments beside the ring. */
static int take_slots(struct smv_client *client, const struct codec_frame *frame,
                      const struct smv_connect *options)
{
        struct shared_segment answers, rows;
        uint32_t vocab = client->model_count ? client->models[0].about.vocab : 0;
        const char *why = "the reply does not describe them";
        int r = find_segment(client, frame, "answers", &answers);

        if (!r && options->whole_rows)
                r = find_segment(client, frame, "rows", &rows);
        if (!r && !vocab)
                r = -EPROTO;
        if (!r)
                r = slots_open(&client->slots, options->ask_slots, &answers,
                               options->whole_rows ? &rows : NULL, vocab, &why);
        if (!r)
                return 0;
        shared_ring_close(&client->ring);
        client->ring_failed = true;
        return client_fail(client, r, "the daemon's slots for answers cannot be used: %s", why);
}

static int take_transport(struct smv_client *client, const struct codec_frame *frame,
                          const struct smv_connect *options)
{
        struct codec_text text;
        bool ring;
        int r;

        ring = !codec_get_text(frame, "transport", &text) && text.count == 4 &&
               !memcmp(text.bytes, "ring", 4);
        if (ring && options->transport == SMV_TRANSPORT_SOCKET)
                return client_fail(client, -EPROTO,
                                   "the daemon gave a ring, but the client asked for the socket");
        if (!ring && options->transport == SMV_TRANSPORT_RING)
                return client_fail(client, -EPROTO, "the daemon gave no ring");
        r = ring ? take_ring(client, frame, options->doorbell) : 0;
        return r || !ring || !options->ask_slots ? r : take_slots(client, frame, options);
}

static int take_limits(struct smv_client *client, const struct codec_frame *frame)
{
        uint64_t version, frame_bytes;
        int r;

        r = codec_get_uint(frame, "version", &version);
        if (r)
                return client_bad_reply(client, r, "version");
        if (version != SMV_PROTOCOL_VERSION)
                return client_fail(client, -EPROTO,
                                   "the daemon chose version %llu, which is not ours",
                                   (unsigned long long)version);
        r = codec_get_uint(frame, "frame_bytes", &frame_bytes);
        if (r)
                return client_bad_reply(client, r, "frame_bytes");

        client->request_max = frame_bytes < UINT32_MAX ? frame_bytes : UINT32_MAX;
        /* A daemon that accepts longer requests also sends longer replies. */
        if (client->request_max > client->connection.frame_max)
                client->connection.frame_max = client->request_max < CONNECTION_IN_MAX
                                                       ? client->request_max
                                                       : CONNECTION_IN_MAX;
        return 0;
}

/* A number that an older daemon does not give is 0. */
static uint64_t number_of(const struct codec_frame *model, const char *name)
{
        uint64_t value = 0;

        return codec_get_uint(model, name, &value) ? 0 : value;
}

static uint32_t count_of(const struct codec_frame *model, const char *name)
{
        uint64_t value = number_of(model, name);

        return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* The same for texts; one that is too long is cut. */
static const char *text_of(const struct codec_frame *model, const char *name, char *to,
                           size_t to_bytes)
{
        struct codec_text text = { .count = 0 };
        size_t count;

        if (codec_get_text(model, name, &text))
                text.count = 0;
        count = text.count < to_bytes ? text.count : to_bytes - 1;
        memcpy(to, text.count ? text.bytes : "", count);
        to[count] = '\0';
        return to;
}

/* 0; 1: it cannot be used, as its name is too long or it has too many end tokens; or -EPROTO. */
static int take_model(struct smv_client *client, const struct codec_frame *frame,
                      struct client_model *model)
{
        struct codec_text name;
        size_t bytes;
        int r = codec_get_text(frame, "name", &name);

        client->ids.count = 0;
        if (!r && codec_has(frame, "end_tokens"))
                r = codec_get_ids(frame, "end_tokens", &client->ids);
        if (r)
                return r;
        bytes = client->ids.count;
        if (name.count > SMV_NAME_BYTES_MAX || bytes > sizeof(model->ends))
                return 1;
        if (bytes)
                memcpy(model->ends, client->ids.at, bytes);
        model->about = (struct smv_model){
                .name = text_of(frame, "name", model->name, sizeof(model->name)),
                .architecture = text_of(frame, "architecture", model->architecture,
                                        sizeof(model->architecture)),
                .quantisation = text_of(frame, "quantisation", model->quantisation,
                                        sizeof(model->quantisation)),
                .digest = text_of(frame, "digest", model->digest, sizeof(model->digest)),
                .parameters = number_of(frame, "parameters"),
                .bytes = number_of(frame, "bytes"),
                .modified_s = number_of(frame, "modified_s"),
                .vocab = count_of(frame, "vocab"),
                .context = count_of(frame, "context"),
                .trained_context = count_of(frame, "trained_context"),
                .chat = codec_get_flag(frame, "chat"),
                .is_default = codec_get_flag(frame, "default"),
                .end_token_count = bytes / sizeof(*model->ends),
                .end_tokens = model->ends,
                .tool_dialect = text_of(frame, "tool_dialect", model->tool_dialect,
                                        sizeof(model->tool_dialect)),
                .format = text_of(frame, "format", model->format, sizeof(model->format)),
                .layers = count_of(frame, "layers"),
                .gpu_layers = count_of(frame, "gpu_layers"),
                .reasoning = codec_get_flag(frame, "reasoning"),
        };
        return 0;
}

/* Takes the first CLIENT_MODELS_MAX of those that can be used. */
static int take_models(struct smv_client *client, const struct codec_frame *frame)
{
        struct codec_frame model;
        int r = 0;

        client->model_count = 0;
        for (size_t i = 0; client->model_count < CLIENT_MODELS_MAX; i++) {
                r = codec_get_model(frame, i, &model);
                if (r == -ENOENT)
                        return 0;
                if (!r)
                        r = take_model(client, &model, &client->models[client->model_count]);
                if (r < 0)
                        return client_bad_reply(client, r, "models");
                client->model_count += !r;
        }
        return 0;
}

int smv_model(const struct smv_client *client, size_t index, struct smv_model *ret_model)
{
        struct smv_model model;

        if (!client || !ret_model || index >= client->model_count)
                return -ENOENT;
        model = client->models[index].about;
        client_copy_out(ret_model, &model, sizeof(model));
        return 0;
}

/* *ret_id: the reply will have it. */
static int send_hello(struct smv_client *client, const struct smv_connect *options,
                      uint32_t *ret_id)
{
        struct client_request request;

        client_request_begin(client, &request, "hello");
        put_hello(&request.writer, options);
        if (options->transport != SMV_TRANSPORT_SOCKET)
                connection_accept_fds(&client->connection);
        *ret_id = request.pending.id;
        return client_request_send(client, &request);
}

/*
 * Waits for the reply to hello, and maps the ring if it brought one.  A daemon that refuses the
 * connection itself answers without the id of hello, and hangs up.
 */
static int take_reply(struct smv_client *client, const struct smv_connect *options, uint32_t id,
                      uint64_t deadline)
{
        struct codec_frame frame;
        int r;

        r = client_request_await(client, id, deadline, &frame);
        if (r == -ENOTCONN && client->connection_refused)
                r = -EREMOTEIO;
        if (!r)
                r = take_limits(client, &frame);
        if (!r)
                r = take_models(client, &frame);
        return r ? r : take_transport(client, &frame, options);
}

/* ---- a daemon that stops ---- */

/* A client that is not connected, or NULL: out of memory. */
static struct smv_client *make_client(const struct smv_connect *options)
{
        struct smv_client *client = calloc(1, sizeof(*client));

        if (!client || codec_init(&client->codec)) {
                free(client);
                return NULL;
        }
        connection_init(&client->connection, -1);
        client->request_max = SMV_FRAME_BYTES_MAX;
        client->reply_ms = options->reply_timeout_ms ? options->reply_timeout_ms : CLIENT_REPLY_MS;
        client->spin_ns = (uint64_t)options->spin_us * 1000u;
        return client;
}

/*
 * A daemon that stops is often followed by another one, at the same path.  Until that one listens,
 * the path may have no socket, or one that nobody listens at; and a connection that the old daemon
 * has not accepted is lost with it.
 */
static void note_stopping(const struct smv_client *client, struct attempt *attempt)
{
        if (client->failure.code != SMV_SHUTTING_DOWN || !client->failure.retry_ms ||
            attempt->stopping)
                return;
        memmove(attempt->paths.at[0], attempt->paths.at[attempt->path],
                sizeof(attempt->paths.at[0]));
        attempt->paths.count = 1;
        attempt->path = 0;
        attempt->stopping = true;
}

/*
 * A daemon that stops does not take connections from a socket that it leaves to the next one, but
 * it answers at its control socket.  If it refuses hello there because it stops, `client` has that
 * refusal as its failure: true.  A daemon that does not stop is not told from one that is silent.
 */
static bool hear_of_stopping(struct smv_client *client, const struct attempt *attempt)
{
        const struct smv_connect options = { .transport = SMV_TRANSPORT_SOCKET };
        struct client_failure *failure = &client->failure;
        struct smv_client *asks;
        uint32_t id;
        bool stops;
        int fd;

        if (attempt->options.use_fd || attempt->options.while_stopping)
                return false;
        fd = dial_control(attempt->paths.at[attempt->path]);
        if (fd < 0)
                return false;
        asks = make_client(&options);
        if (!asks) {
                close(fd);
                return false;
        }
        connection_init(&asks->connection, fd);
        stops = !check_uid(asks, attempt) && !send_hello(asks, &options, &id) &&
                take_reply(asks, &options, id, deadline_after(CONTROL_MS)) == -EREMOTEIO &&
                asks->failure.code == SMV_SHUTTING_DOWN;
        if (stops) {
                *failure = asks->failure;
                snprintf(failure->message, sizeof(failure->message),
                         "%.200s; the next daemon will answer", asks->failure.message);
        }
        smv_close(asks);
        return stops;
}

static void tell_wait(const struct smv_client *client, const struct smv_connect *options,
                      uint32_t wait_ms)
{
        struct smv_problem why = { SMV_SIZE(smv_problem) };

        if (!options->on_wait)
                return;
        smv_error(client, &why);
        options->on_wait(options->on_wait_arg, &why, wait_ms);
}

/* The longest that a wait until the deadline takes, in ms. */
static uint32_t left_until(uint64_t deadline)
{
        uint64_t now = monotonic_ns();
        uint64_t left_ms = now < deadline ? (deadline - now) / 1000000 : 0;

        return left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
}

/*
 * A socket that a service manager keeps open takes connections while no daemon is there, and a
 * stopped daemon does not answer.  So waits a moment for the first bytes, and tells of a longer
 * wait.
 */
static int await_first_bytes(struct smv_client *client, struct attempt *attempt)
{
        int r;

        if (!is_before(SILENCE_MS, attempt->deadline))
                return 0;
        r = connection_poll(&client->connection, deadline_after(SILENCE_MS));
        if (r)
                return r < 0 ? client_fail(client, r, "out of memory") : 0;
        client_fail(client, -EAGAIN, "the daemon does not answer yet");
        if (hear_of_stopping(client, attempt))
                note_stopping(client, attempt);
        tell_wait(client, &attempt->options, left_until(attempt->deadline));
        client_clear_failure(client);
        return 0;
}

/* Sends hello on the new connection, and takes the reply, however long it takes. */
static int say_hello(struct smv_client *client, struct attempt *attempt)
{
        const struct smv_connect *options = &attempt->options;
        uint32_t id;
        int r;

        r = send_hello(client, options, &id);
        if (!r)
                r = await_first_bytes(client, attempt);
        if (!r)
                r = take_reply(client, options, id, attempt->deadline);
        connection_close_fds(&client->connection);
        return r;
}

/* ---- connecting ---- */

/* One connection, from the socket to hello's reply. */
static int connect_once(struct smv_client *client, struct attempt *attempt)
{
        const struct smv_connect *options = &attempt->options;
        int r;

        r = open_connection(client, attempt);
        if (!r && options->transport > SMV_TRANSPORT_SOCKET)
                r = client_refuse(client, -EINVAL, "transport",
                                  "transport is %u; it may be 0 to %u", options->transport,
                                  SMV_TRANSPORT_SOCKET);
        if (!r && options->doorbell > SMV_DOORBELL_NONE)
                r = client_refuse(client, -EINVAL, "doorbell", "doorbell is %u; it may be 0 to %u",
                                  options->doorbell, SMV_DOORBELL_NONE);
        if (!r && options->ask_slots > SMV_ASK_SLOTS_MAX)
                r = client_refuse(client, -EINVAL, "ask_slots",
                                  "ask_slots is %u; it may be up to %u", options->ask_slots,
                                  SMV_ASK_SLOTS_MAX);
        return r ? r : say_hello(client, attempt);
}

/* The client is as it was before it connected. */
static void undo_connection(struct smv_client *client)
{
        connection_deinit(&client->connection);
        connection_init(&client->connection, -1);
        client->ring_failed = client->connection_refused = false;
        client->parting = (struct client_failure){ 0 };
        client->last_id = 0;
        client_clear_failure(client);
}

/* If the ring cannot be used, connects again, and asks for records through the socket. */
static int connect_with_fallback(struct smv_client *client, struct attempt *attempt)
{
        struct smv_connect *options = &attempt->options;
        int r;

        r = connect_once(client, attempt);
        if (!client->ring_failed || options->transport != SMV_TRANSPORT_AUTO || options->use_fd)
                return r;

        undo_connection(client);
        options->transport = SMV_TRANSPORT_SOCKET;
        return connect_once(client, attempt);
}

/*
 * How long to wait after this failure: as long as the daemon says, and each time at least twice as
 * long as before.  0: trying again would not help.
 */
static uint32_t choose_wait(const struct smv_client *client, const struct attempt *attempt, int r,
                            uint32_t last_ms)
{
        uint32_t least = client->failure.retry_ms, most = WAIT_MS_MAX;

        if (!r || attempt->options.use_fd)
                return 0;
        if (!least) {
                if (r != -EAGAIN && !(attempt->stopping && (is_absent(r) || r == -ENOTCONN)))
                        return 0;
                least = WAIT_MS_MIN;
                most = WAIT_MS_SOCKET_MAX;
        }
        if (2 * last_ms < most)
                most = 2 * last_ms;
        return most < least ? least : most;
}

/* Tries until it has a connection, another try would not help, or the deadline would pass. */
static int connect_patiently(struct smv_client *client, struct attempt *attempt)
{
        uint32_t wait_ms = 0;
        int r;

        for (;;) {
                r = connect_with_fallback(client, attempt);
                note_stopping(client, attempt);
                wait_ms = choose_wait(client, attempt, r, wait_ms);
                if (!wait_ms || !is_before(wait_ms, attempt->deadline))
                        return r == -EAGAIN ? -ETIMEDOUT : r;
                tell_wait(client, &attempt->options, wait_ms);
                sleep_for(wait_ms);
                undo_connection(client);
        }
}

/* The same text, as one that is never freed; "" for a name that is not a field of hello. */
static const char *constant_field(const char *field)
{
        static const char *const fields[] = { "size",       "socket",   "transport", "doorbell",
                                              "ring_bytes", "versions", "ask_slots", "whole_rows" };

        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
                if (!strcmp(field, fields[i]))
                        return fields[i];
        return "";
}

/* Says why smv_connect() failed, in memory that stays when the client is gone. */
static void describe(const struct smv_connect *options, const struct client_failure *failure, int r)
{
        bool writes = options->message && options->message_bytes;
        struct smv_problem problem = {
                .code = failure->code,
                .name = failure->code ? smv_code_name(failure->code) : client_errno_name(r),
                .field = constant_field(failure->field),
                .message = writes ? options->message : "",
                .retry_ms = failure->retry_ms,
        };

        if (writes)
                snprintf(options->message, options->message_bytes, "%s",
                         *failure->message ? failure->message : strerror(-r));
        if (options->problem)
                client_copy_out(options->problem, &problem, sizeof(problem));
}

/* On failure closes the descriptor that the caller gave. */
static int out_of_memory(const struct smv_connect *options)
{
        if (options->use_fd)
                close(options->fd);
        describe(options, &(struct client_failure){ 0 }, -ENOMEM);
        return -ENOMEM;
}

/* The daemon has not answered hello. */
static void describe_silence(struct smv_client *client, const struct attempt *attempt,
                             int timeout_ms)
{
        client_timed_out(client, timeout_ms, "timeout_ms");
        if (attempt->stopping)
                snprintf(client->failure.message, sizeof(client->failure.message),
                         "the daemon is stopping, and no other one answered within %d ms "
                         "(timeout_ms)",
                         timeout_ms);
}

int smv_connect(const struct smv_connect *options, struct smv_client **ret_client)
{
        struct attempt attempt = { 0 };
        struct smv_client *client;
        int timeout_ms, r;

        *ret_client = NULL;
        r = options ? client_copy_in(&attempt.options, sizeof(attempt.options), options) : 0;
        if (r)
                return r;
        client = make_client(&attempt.options);
        if (!client)
                return out_of_memory(&attempt.options);
        timeout_ms = attempt.options.timeout_ms ? attempt.options.timeout_ms : CONNECT_MS;
        attempt.deadline = deadline_after(timeout_ms);
        daemon_paths_find(attempt.options.socket, &attempt.paths);

        r = connect_patiently(client, &attempt);
        if (r == -ETIMEDOUT && client->connection.lost)
                describe_silence(client, &attempt, timeout_ms);
        if (r) {
                describe(&attempt.options, &client->failure, r);
                smv_close(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

enum smv_transport smv_transport_used(const struct smv_client *client)
{
        return client && client->ring.segment ? SMV_TRANSPORT_RING : SMV_TRANSPORT_SOCKET;
}

const char *smv_socket_used(const struct smv_client *client)
{
        return client && *client->socket ? client->socket : NULL;
}

struct smv_client *smv_close(struct smv_client *client)
{
        if (!client)
                return NULL;
        connection_deinit(&client->connection);
        shared_ring_close(&client->ring);
        slots_close(&client->slots);
        codec_deinit(&client->codec);
        bytes_deinit(&client->ids);
        bytes_deinit(&client->logprobs[0].at);
        bytes_deinit(&client->logprobs[1].at);
        bytes_deinit(&client->rows[0].at);
        bytes_deinit(&client->rows[1].at);
        bytes_deinit(&client->parts[0].at);
        bytes_deinit(&client->parts[1].at);
        bytes_deinit(&client->text);
        bytes_deinit(&client->beam);
        stream_table_deinit(&client->streams);
        free(client->pending);
        free(client);
        return NULL;
}
