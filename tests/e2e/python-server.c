#include "tests/e2e/python-server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/daemon-fixture.h"

static pid_t server;

unsigned python_server_start(const char *name, const char *argument)
{
        char program[512], line[64] = "";
        unsigned port = 0;
        FILE *from;
        int out[2];

        snprintf(program, sizeof(program), "%s/tests/e2e/%s.py", env_path("SOURCES"), name);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        server = fork();
        assert_true(server >= 0);
        if (!server) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                dup2(out[1], STDOUT_FILENO);
                execlp("python3", "python3", "-B", program, argument, (char *)NULL);
                _exit(127);
        }
        close(out[1]);
        from = fdopen(out[0], "r");
        assert_non_null(from);
        if (!fgets(line, sizeof(line), from) || sscanf(line, "%u", &port) != 1)
                fail_msg("%s does not start", program);
        fclose(from);
        return port;
}

void python_server_stop(void)
{
        if (server > 0 && !kill(server, SIGKILL))
                waitpid(server, NULL, 0);
        server = 0;
}

bool python_server_is_missing(const char *command)
{
        char line[1024], said[256] = "";
        FILE *out;

        if (system("python3 -c pass 2>/dev/null")) {
                printf("# there is no python3\n");
                return true;
        }
        snprintf(line, sizeof(line), "%s %s 2>&1", env_path("SAMOVAR"), command);
        out = popen(line, "r");
        if (!out || !fgets(said, sizeof(said), out))
                *said = '\0';
        if (out)
                pclose(out);
        if (!strstr(said, "without libcurl"))
                return false;
        printf("# the build has no libcurl\n");
        return true;
}
