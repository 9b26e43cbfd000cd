/* NVIDIA GPUs: the device, its driver, who may use it, and the library that computes on it. */
#include "cli/doctor/checks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR     0x10de /* NVIDIA, in the numbers of PCI */
#define DISPLAY    0x03   /* the class of display controllers */
#define LIBRARY    "libsamovar-cuda.so"
#define LEAST_MAIN 525u /* the first drivers that know CUDA 12 */

/* GPUs on the bus, with or without a driver. */
static unsigned count_on_bus(const struct machine *machine)
{
        char folder[MACHINE_PATH], file[MACHINE_PATH];
        DIR *devices =
                machine_path(machine, "/sys/bus/pci/devices", folder) ? opendir(folder) : NULL;
        const struct dirent *entry;
        uint64_t vendor, class;
        unsigned count = 0;

        while (devices && (entry = readdir(devices))) {
                snprintf(file, sizeof(file), "/sys/bus/pci/devices/%.64s/vendor", entry->d_name);
                if (*entry->d_name == '.' || !machine_read_number(machine, file, &vendor) ||
                    vendor != VENDOR)
                        continue;
                snprintf(file, sizeof(file), "/sys/bus/pci/devices/%.64s/class", entry->d_name);
                if (machine_read_number(machine, file, &class) && class >> 16 == DISPLAY)
                        count++;
        }
        if (devices)
                closedir(devices);
        return count;
}

/* Nodes of GPUs: /dev/nvidia0 and so on. */
static unsigned count_nodes(const struct machine *machine)
{
        char folder[MACHINE_PATH];
        DIR *devices = machine_path(machine, "/dev", folder) ? opendir(folder) : NULL;
        const struct dirent *entry;
        unsigned count = 0;

        while (devices && (entry = readdir(devices)))
                count += !strncmp(entry->d_name, "nvidia", 6) &&
                         isdigit((unsigned char)entry->d_name[6]);
        if (devices)
                closedir(devices);
        return count;
}

static bool has_gpu(const struct machine *machine)
{
        return count_on_bus(machine) || count_nodes(machine);
}

static bool is_without(const struct machine *machine, struct finding *finding)
{
        if (has_gpu(machine))
                return false;
        find(finding, VERDICT_OK, "not needed: there is no NVIDIA GPU");
        return true;
}

void check_gpu(const struct machine *machine, struct finding *finding)
{
        unsigned on_bus = count_on_bus(machine), nodes = count_nodes(machine);

        if (!on_bus && !nodes) {
                find(finding, VERDICT_OK, "no NVIDIA GPU is visible; models run on the processors");
                return;
        }
        find(finding, VERDICT_OK, "%u GPU%s on the bus, %u device node%s", on_bus,
             on_bus == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
        if (!nodes) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "the driver has made no /dev/nvidia0: load it (modprobe nvidia, "
                                "nvidia-persistenced), or give the container the GPU (--gpus all)");
        } else if (!machine_has(machine, "/dev/nvidia-uvm")) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "/dev/nvidia-uvm is missing: modprobe nvidia-uvm, or enable "
                                "nvidia-persistenced");
        }
}

/* The version in a line like "NVRM version: ... Kernel Module  580.65.06". */
static bool find_version(const char *text, char to[32], unsigned *ret_main)
{
        static const char before[] = "Module";
        const char *at = strstr(text, before);

        at = at ? at + sizeof(before) - 1 : NULL;
        for (; at && *at && *at != '\n'; at++) {
                unsigned minor;
                int n = 0;

                if (isspace((unsigned char)at[-1]) && isdigit((unsigned char)*at) &&
                    sscanf(at, "%u.%u%n", ret_main, &minor, &n) == 2) {
                        snprintf(to, 32, "%.*s", (int)strcspn(at, " \t\n"), at);
                        return true;
                }
        }
        return false;
}

/* The driver's own library, which the backend needs. */
static bool has_driver_library(const struct machine *machine)
{
        static const char *const folders[] = {
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/lib64",
                "/usr/lib",
                "/lib/x86_64-linux-gnu",
                "/usr/local/cuda/compat",
                "/usr/local/nvidia/lib64",
                "/run/opengl-driver/lib",
        };
        char path[MACHINE_PATH];

        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
                snprintf(path, sizeof(path), "%s/libcuda.so.1", folders[i]);
                if (machine_has(machine, path))
                        return true;
        }
        return false;
}

void check_gpu_driver(const struct machine *machine, struct finding *finding)
{
        char text[1024], version[32];
        unsigned main = 0;

        if (is_without(machine, finding))
                return;
        if (!machine_read(machine, "/proc/driver/nvidia/version", text, sizeof(text)) ||
            !find_version(text, version, &main)) {
                find(finding, VERDICT_WARN, "NVIDIA's driver is not loaded");
                advise(finding, "install NVIDIA's driver and load it (modprobe nvidia); nouveau "
                                "cannot compute");
                return;
        }
        find(finding, VERDICT_OK, "version %s", version);
        if (main < LEAST_MAIN) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "install version %u or later: older ones do not know CUDA 12",
                       LEAST_MAIN);
        } else if (!has_driver_library(machine)) {
                finding->verdict = VERDICT_WARN;
                find_more(finding, "; its libcuda.so.1 is in none of the usual folders");
                advise(finding, "install the driver's libraries (Debian: libcuda1), or mount "
                                "them into the container");
        }
}

/* The service of the machine sees no devices without a file that the guide names. */
static bool service_hides_gpus(const struct machine *machine)
{
        return (machine_has(machine, "/usr/lib/systemd/system/samovar.service") ||
                machine_has(machine, "/lib/systemd/system/samovar.service") ||
                machine_has(machine, "/usr/local/lib/systemd/system/samovar.service")) &&
               !machine_has(machine, "/etc/systemd/system/samovar.service.d/gpu.conf");
}

void check_gpu_permission(const struct machine *machine, struct finding *finding)
{
        static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm" };
        struct stat file;

        if (is_without(machine, finding))
                return;
        find(finding, VERDICT_OK, "%s may use the devices", machine->user);
        for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
                if (machine_stat(machine, nodes[i], &file) || machine_may_write(machine, &file))
                        continue;
                find(finding, VERDICT_WARN, "%s may not use %s, mode %04o", machine->user, nodes[i],
                     file.st_mode & 07777u);
                advise(finding, "let a group in (NVreg_DeviceFileMode of the driver), or join the "
                                "one that owns it: often video or render");
                return;
        }
        if (service_hides_gpus(machine)) {
                finding->verdict = VERDICT_WARN;
                find_more(finding, "; the service of the machine may not");
                advise(finding, "install the drop-in gpu.conf for samovar.service: "
                                "docs/guide/install.md, With an NVIDIA GPU");
        }
}

void check_gpu_library(const struct machine *machine, struct finding *finding)
{
        char path[2 * MACHINE_PATH];

        for (size_t i = 0; i < machine->library_count; i++) {
                snprintf(path, sizeof(path), "%s/" LIBRARY, machine->libraries[i]);
                if (machine_has(machine, path)) {
                        find(finding, VERDICT_OK, "%s", path);
                        return;
                }
        }
        if (is_without(machine, finding))
                return;
        find(finding, VERDICT_WARN, LIBRARY " is not in %s",
             machine->library_count ? machine->libraries[0] : "any folder");
        advise(finding, "build samovar where nvcc is, and name the file with the setting "
                        "backend_library");
}
