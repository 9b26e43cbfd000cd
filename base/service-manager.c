#include "base/service-manager.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

#define FIRST_PASSED_FD 3
#define NS_PER_US       1000u

/* A variable that is a number, or `absent`.  False: it is something else. */
static bool read_number(const char *name, uint64_t absent, uint64_t *ret_number)
{
        const char *value = getenv(name);
        char *end;

        *ret_number = absent;
        if (!value)
                return true;
        errno = 0;
        *ret_number = strtoull(value, &end, 10);
        return *value >= '0' && *value <= '9' && !*end && !errno;
}

static int refuse(char *why, size_t why_bytes, const char *name)
{
        snprintf(why, why_bytes, "the variable %s of the service manager is \"%s\", not a number",
                 name, getenv(name));
        return error_raise(-EINVAL);
}

/* The variables are for us only if LISTEN_PID says so: a parent may have left them. */
static int take_sockets(struct service_manager *manager, uint32_t sockets_max, const char *takes,
                        char *why, size_t why_bytes)
{
        uint64_t pid, count;
        int r = 0;

        if (!read_number("LISTEN_PID", 0, &pid))
                return refuse(why, why_bytes, "LISTEN_PID");
        if (!read_number("LISTEN_FDS", 0, &count))
                return refuse(why, why_bytes, "LISTEN_FDS");
        if (pid != (uint64_t)getpid() || !count)
                return 0;
        if (count > sockets_max) {
                snprintf(why, why_bytes, "the service manager passes %llu sockets; %s",
                         (unsigned long long)count, takes);
                return error_raise(-EINVAL);
        }
        while (manager->passed_count < count && !r) {
                int fd = FIRST_PASSED_FD + (int)manager->passed_count;

                r = sys_set_close_on_exec(fd);
                manager->passed_fds[manager->passed_count++] = fd;
        }
        return error_pass(r);
}

static int take_watchdog(struct service_manager *manager, char *why, size_t why_bytes)
{
        uint64_t pid, us;

        if (!read_number("WATCHDOG_PID", (uint64_t)getpid(), &pid))
                return refuse(why, why_bytes, "WATCHDOG_PID");
        if (!read_number("WATCHDOG_USEC", 0, &us))
                return refuse(why, why_bytes, "WATCHDOG_USEC");
        if (pid == (uint64_t)getpid() && us < UINT64_MAX / NS_PER_US)
                manager->watchdog_ns = us * NS_PER_US;
        return 0;
}

static int take_address(struct service_manager *manager, char *why, size_t why_bytes)
{
        const char *address = getenv("NOTIFY_SOCKET");

        if (!address || (address[0] != '/' && address[0] != '@'))
                return 0;
        if (strlen(address) >= sizeof(manager->address)) {
                snprintf(why, why_bytes, "NOTIFY_SOCKET is too long: %s", address);
                return error_raise(-ENAMETOOLONG);
        }
        manager->fd = sys_socket_datagram();
        if (manager->fd < 0)
                return error_raise(manager->fd);
        snprintf(manager->address, sizeof(manager->address), "%s", address);
        return 0;
}

int service_manager_open(struct service_manager *manager, uint32_t sockets_max, const char *takes,
                         char *why, size_t why_bytes)
{
        static const char *const variables[] = { "LISTEN_PID",   "LISTEN_FDS",    "LISTEN_FDNAMES",
                                                 "WATCHDOG_PID", "WATCHDOG_USEC", "NOTIFY_SOCKET" };
        int r;

        *manager = (struct service_manager){ .fd = -1 };
        assert(sockets_max <= SERVICE_SOCKETS_MAX);
        r = take_sockets(manager, sockets_max, takes, why, why_bytes);
        if (!r)
                r = take_watchdog(manager, why, why_bytes);
        if (!r)
                r = take_address(manager, why, why_bytes);
        for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
                unsetenv(variables[i]);
        return error_pass(r);
}

/* False if that file or folder can be seen, or if something else is wrong with it. */
static bool is_unseen(const char *path, size_t bytes)
{
        char first[512];
        int fd;

        if (bytes >= sizeof(first))
                return false;
        memcpy(first, path, bytes);
        first[bytes] = '\0';
        fd = sys_open(first, O_PATH, 0);
        if (fd >= 0)
                sys_close(fd);
        return fd == -ENOENT || fd == -EACCES;
}

const char *service_manager_hides(const struct service_manager *manager, const char *path)
{
        static const char *const folders[] = { "/home", "/root", "/run/user" };

        for (size_t i = 0; manager->fd >= 0 && i < sizeof(folders) / sizeof(*folders); i++) {
                size_t bytes = strlen(folders[i]);

                if (!strncmp(path, folders[i], bytes) && path[bytes] == '/')
                        return is_unseen(path, bytes + 1 + strcspn(path + bytes + 1, "/"))
                                       ? folders[i]
                                       : NULL;
        }
        return NULL;
}

void service_manager_close(struct service_manager *manager)
{
        manager->fd = sys_close(manager->fd);
}

void service_manager_tell(const struct service_manager *manager, const char *format, ...)
{
        char text[512];
        va_list values;
        int count;
        ssize_t n;

        if (manager->fd < 0)
                return;
        va_start(values, format);
        count = vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        if (count < 0 || (size_t)count >= sizeof(text))
                return;
        n = sys_send_to(manager->fd, manager->address, text, (size_t)count);
        if (n < 0)
                log_debug("service_manager_lost error=%s", strerror((int)-n));
}
