/* Linked into a program with --wrap=write: its first write is half done when the process is killed.
   SPDX-License-Identifier: MIT */
#include <signal.h>
#include <unistd.h>

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    const ssize_t written = __real_write(fd, bytes, count / 2);
    kill(getpid(), SIGKILL);
    return written;
}
