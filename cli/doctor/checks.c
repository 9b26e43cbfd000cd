#include "cli/doctor/checks.h"

const struct check checks[] = {
        { "daemon", "socket", check_socket },
        { "daemon", "folder", check_folder },
        { "daemon", "answer", check_daemon },
        { "daemon", "version", check_version },
        { "daemon", "group", check_group },
        { "daemon", "services", check_services },

        { "memory", "free", check_memory },
        { "memory", "limit", check_memory_limit },
        { "memory", "locked", check_locked_memory },
        { "memory", "huge pages", check_huge_pages },
        { "memory", "reserved", check_reserved_pages },
        { "memory", "shared", check_shared_memory },

        { "processors", "instructions", check_instructions },
        { "processors", "usable", check_processors },
        { "processors", "nodes", check_nodes },

        { "gpu", "device", check_gpu },
        { "gpu", "driver", check_gpu_driver },
        { "gpu", "permission", check_gpu_permission },
        { "gpu", "library", check_gpu_library },

        { "models", "folder", check_models },
        { "models", "owners", check_model_owners },
        { "models", "files", check_model_files },
        { "models", "disk", check_disk },

        { "http", "127.0.0.1", check_port_4 },
        { "http", "[::1]", check_port_6 },
        { "http", "health", check_health },

        { "system", "descriptors", check_descriptors },
        { "system", "io_uring", check_uring },
        { "system", "container", check_container },
        { "system", "seccomp", check_seccomp },
        { "system", "clock", check_clock },
};

const size_t check_count = sizeof(checks) / sizeof(checks[0]);
