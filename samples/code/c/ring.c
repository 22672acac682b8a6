/* A byte ring for one writer and one reader. The indices run on for ever and are masked on use,
 * so that "full" and "empty" need no flag: they differ by capacity and by nothing. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RING_BYTES 4096u /* a power of two */

struct ring {
    _Atomic uint32_t head; /* next byte to write, owned by the writer */
    _Atomic uint32_t tail; /* next byte to read, owned by the reader */
    unsigned char bytes[RING_BYTES];
};

static size_t ring_used(struct ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire)
         - atomic_load_explicit(&r->tail, memory_order_acquire);
}

/* Copies in two pieces when the stretch passes the end of the array. */
static void copy_in(struct ring *r, uint32_t at, const unsigned char *from, size_t n)
{
    size_t first = RING_BYTES - (at & (RING_BYTES - 1));
    if (first > n)
        first = n;
    memcpy(r->bytes + (at & (RING_BYTES - 1)), from, first);
    memcpy(r->bytes, from + first, n - first);
}

static void copy_out(struct ring *r, uint32_t at, unsigned char *to, size_t n)
{
    size_t first = RING_BYTES - (at & (RING_BYTES - 1));
    if (first > n)
        first = n;
    memcpy(to, r->bytes + (at & (RING_BYTES - 1)), first);
    memcpy(to + first, r->bytes, n - first);
}

/* Returns how many bytes were taken, which is fewer than n when the ring is nearly full. */
size_t ring_write(struct ring *r, const void *from, size_t n)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t room = RING_BYTES - ring_used(r);
    if (n > room)
        n = room;
    copy_in(r, head, from, n);
    atomic_store_explicit(&r->head, head + (uint32_t)n, memory_order_release);
    return n;
}

size_t ring_read(struct ring *r, void *to, size_t n)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t used = ring_used(r);
    if (n > used)
        n = used;
    copy_out(r, tail, to, n);
    atomic_store_explicit(&r->tail, tail + (uint32_t)n, memory_order_release);
    return n;
}

int main(void)
{
    static struct ring r;
    char line[64];
    ring_write(&r, "the mill turns\n", 15);
    size_t n = ring_read(&r, line, sizeof line - 1);
    line[n] = '\0';
    fputs(line, stdout);
    return ring_used(&r) == 0 ? 0 : 1;
}
