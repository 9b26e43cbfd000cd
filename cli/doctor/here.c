#include "cli/doctor/here.h"

#include <errno.h>
#include <pwd.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/ask.h"
#include "cli/doctor/look-at-models.h"

#define DEFAULT_PORT 7266u

/* ---- this process ---- */

static void find_user(struct machine *machine)
{
        const struct passwd *entry = getpwuid(getuid());
        gid_t groups[MACHINE_GROUPS];
        int n = getgroups((int)MACHINE_GROUPS, groups);

        machine->uid = getuid();
        machine->gid = getgid();
        for (int i = 0; i < n; i++)
                machine->groups[machine->group_count++] = groups[i];
        if (entry)
                snprintf(machine->user, sizeof(machine->user), "%s", entry->pw_name);
        else
                snprintf(machine->user, sizeof(machine->user), "uid %u", machine->uid);
}

/* The same places as in client/daemon-address.c. */
static void find_sockets(const struct cli *cli, struct machine *machine)
{
        const char *variable = getenv("SAMOVAR_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
        const char *named = cli->socket ? cli->socket : variable && *variable ? variable : NULL;

        machine->named = named != NULL;
        if (named) {
                snprintf(machine->sockets[machine->socket_count++], MACHINE_PATH, "%s", named);
                return;
        }
        if (runtime && runtime[0] == '/')
                snprintf(machine->sockets[machine->socket_count++], MACHINE_PATH, "%s/%s", runtime,
                         SMV_SOCKET_PATH);
        snprintf(machine->sockets[machine->socket_count++], MACHINE_PATH, "%s", SMV_SYSTEM_SOCKET);
}

/* ---- files ---- */

/* The folders in which the daemon looks for its library. */
static void find_libraries(struct machine *machine)
{
        const char *named = getenv("SAMOVAR_LIBRARIES");
        char self[MACHINE_PATH], *slash;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (named && *named) {
                snprintf(machine->libraries[machine->library_count++], MACHINE_PATH, "%s", named);
                return;
        }
        snprintf(machine->libraries[machine->library_count++], MACHINE_PATH, "%s",
                 SAMOVAR_LIBRARIES);
        self[n > 0 ? n : 0] = '\0';
        for (int i = 0; i < 2; i++) { /* in a build tree, this program is cli/samovar */
                slash = strrchr(self, '/');
                if (slash)
                        *slash = '\0';
        }
        if (*self && (size_t)snprintf(machine->libraries[1], MACHINE_PATH, "%.480s/kernels", self) <
                             MACHINE_PATH)
                machine->library_count++;
}

/* The space of the disk where the folder is.  If it is not there, that is the nearest one above. */
static void find_disk(struct machine *machine)
{
        char path[MACHINE_PATH], *slash;
        struct statvfs disk;
        int r;

        snprintf(path, sizeof(path), "%s",
                 machine->models.place_count ? machine->models.places[0] : "/");
        while ((r = statvfs(path, &disk)) && errno == ENOENT && (slash = strrchr(path, '/'))) {
                *slash = '\0';
                if (slash == path)
                        snprintf(path, sizeof(path), "/");
        }
        machine->disk_result = r ? -errno : 0;
        if (!r)
                machine->disk_free = (uint64_t)disk.f_bavail * disk.f_frsize;
}

/* Of a folder of safetensors, all files count. */
static void find_model(const struct cli *cli, struct machine *machine)
{
        struct stat file;

        if (!cli->model)
                return;
        if (stat(cli->model, &file))
                snprintf(machine->model_why, sizeof(machine->model_why), "%.80s: %s", cli->model,
                         strerror(errno));
        else if (S_ISDIR(file.st_mode))
                machine->model_bytes = folder_bytes(cli->model);
        else
                machine->model_bytes = (uint64_t)file.st_size;
}

/* ---- what the kernel allows ---- */

static void try_calls(struct machine *machine)
{
        struct timex now = { 0 };
        struct statvfs shm;
        int fd = memfd_create("samovar-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), state;

        machine->memfd_result = fd < 0 ? -errno : 0;
        if (fd >= 0)
                close(fd);
        /* Without parameters the call fails, but only after the kernel has allowed it. */
        machine->uring_result = syscall(SYS_io_uring_setup, 1, NULL) < 0 ? -errno : 0;
        if (!statvfs("/dev/shm", &shm))
                machine->shm_bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
        state = adjtimex(&now);
        machine->clock_state = state < 0 ? -1 : !(now.status & STA_UNSYNC);
        machine->now_s = time(NULL);
}

void machine_here(const struct cli *cli, struct machine *ret_machine)
{
        struct machine *machine = ret_machine;

        *machine = (struct machine){ .root = "", .version = smv_version() };
        machine->port = cli->doctor.http_port ? (uint16_t)cli->doctor.http_port : DEFAULT_PORT;
        machine->http[0].address = "127.0.0.1";
        machine->http[1].address = "::1";
        find_user(machine);
        find_sockets(cli, machine);
        find_libraries(machine);
        look_at_models(cli->doctor.digests, &machine->models);
        find_disk(machine);
        find_model(cli, machine);
        try_calls(machine);
        ask_daemon(cli, machine);
        ask_services(machine);
        for (size_t i = 0; i < 2; i++)
                ask_health(machine->port, &machine->http[i]);
}
