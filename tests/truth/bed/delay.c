/* A cable with a delay: `delay USEC NAME NAME` creates two network interfaces (TAP) and copies each frame from one
 * to the other after USEC. It goes into the background once both exist. The kernel drops frames while the cable is
 * full. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 4096, FRAME_BYTES = 2048 };

typedef struct frame {
    int64_t due_ns;
    size_t size_bytes;
    unsigned char bytes[FRAME_BYTES];
} frame_t;

/* One direction: frames [first, first + count) of a ring. */
typedef struct way {
    int from, to;
    size_t first, count;
    frame_t *frames;
} way_t;

static int64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
        fprintf(stderr, "delay: no TAP interface %s: %s\n", name, strerror(errno));
        exit(1);
    }
    return fd;
}

static void take(way_t *way, int64_t delay_ns)
{
    while (way->count < FRAMES) {
        frame_t *frame = &way->frames[(way->first + way->count) % FRAMES];
        const ssize_t size_bytes = read(way->from, frame->bytes, sizeof frame->bytes);
        if (size_bytes <= 0) {
            return;
        }
        frame->size_bytes = (size_t)size_bytes;
        frame->due_ns = now_ns() + delay_ns;
        way->count++;
    }
}

/* Deliver due frames; returns when the next one is due, or INT64_MAX. */
static int64_t give(way_t *way)
{
    const int64_t now = now_ns();
    for (; way->count > 0 && way->frames[way->first].due_ns <= now; way->count--) {
        const frame_t *frame = &way->frames[way->first];
        if (write(way->to, frame->bytes, frame->size_bytes) < 0) {
            /* The interface is down, so the frame is lost, as on a real cable. */
        }
        way->first = (way->first + 1) % FRAMES;
    }
    return way->count > 0 ? way->frames[way->first].due_ns : INT64_MAX;
}

int main(int argc, char **argv)
{
    const int64_t delay_ns = argc == 4 ? (int64_t)strtol(argv[1], NULL, 10) * 1000 : 0;
    if (delay_ns <= 0) {
        fprintf(stderr, "usage: delay USEC NAME NAME\n");
        return 2;
    }
    const int taps[] = {open_tap(argv[2]), open_tap(argv[3])};
    static frame_t rings[2][FRAMES];
    way_t ways[] = {{taps[0], taps[1], 0, 0, rings[0]}, {taps[1], taps[0], 0, 0, rings[1]}};
    if (daemon(1, 0) != 0) {
        return 1;
    }
    (void)prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        const int64_t due_ns[] = {give(&ways[0]), give(&ways[1])};
        const int64_t next_ns = due_ns[0] < due_ns[1] ? due_ns[0] : due_ns[1];
        struct pollfd ready[] = {{.fd = ways[0].count < FRAMES ? taps[0] : -1, .events = POLLIN},
                                 {.fd = ways[1].count < FRAMES ? taps[1] : -1, .events = POLLIN}};
        const int64_t left_ns = next_ns - now_ns();
        const struct timespec limit = {.tv_sec = left_ns > 0 ? left_ns / 1000000000 : 0,
                                       .tv_nsec = left_ns > 0 ? left_ns % 1000000000 : 0};
        (void)ppoll(ready, 2, next_ns == INT64_MAX ? NULL : &limit, NULL);
        take(&ways[0], delay_ns);
        take(&ways[1], delay_ns);
    }
}
