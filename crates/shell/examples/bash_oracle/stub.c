/* What stands behind every program name while a random script runs: it writes down how it was called and does
   nothing else. The log is a descriptor that the caller opened, because a script can empty the environment. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG 86
#define SIZE (1 << 18)

static char record[SIZE];
static char program[4096];
static size_t used;

static int put(const char *text) {
    size_t length = strlen(text) + 1;
    if (used + length > SIZE) {
        return 0;
    }
    memcpy(record + used, text, length);
    used += length;
    return 1;
}

static const char *base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv) {
    /* One record: the number of strings in four bytes, the working directory, then the arguments. */
    unsigned count = (unsigned)argc + 1;
    char here[4096];
    memcpy(record, &count, 4);
    used = 4;
    if (!getcwd(here, sizeof here) || !put(here)) {
        return 3;
    }
    unsigned sum = 0;
    for (int at = 0; at < argc; at++) {
        const char *text = argv[at];
        if (at == 0) {
            /* `exec -a` gives another name: what counts is the file that runs. */
            ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
            if (length > 0 && strcmp(base(program), base(text)) != 0) {
                text = base(program);
            }
        }
        for (const char *letter = text; *letter; letter++) {
            sum += (unsigned char)*letter;
        }
        if (!put(text)) {
            return 3;
        }
    }
    struct stat log;
    if (fstat(LOG, &log) != 0 || write(LOG, record, used) != (ssize_t)used) {
        return 3;
    }
    /* Output that nobody can know beforehand, with a word that looks like an option. */
    static const char output[] = "o1 -o2\n";
    if (write(1, output, sizeof output - 1) < 0) {
        return 3;
    }
    /* Both outcomes must happen, and a loop over either must end. */
    return (sum + (unsigned)(log.st_size >> 9)) & 1;
}
