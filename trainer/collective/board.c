#include "trainer/collective/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* of the kernel since 5.1 */
#endif

enum { NEVER_SMALLER = F_SEAL_SHRINK | F_SEAL_GROW, READ_ONLY = F_SEAL_FUTURE_WRITE | F_SEAL_SEAL };

static int map_board(struct board *b, int rights, struct error *err)
{
    void *at = mmap(NULL, BOARD_BYTES, rights, MAP_SHARED, b->fd, 0);
    if (at == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map %d bytes that ranks share", BOARD_BYTES);
    b->page = at;
    return 0;
}

/* The memory is taken here, where it can be refused: a write to a page that is not to be had would end us. */
static int fill_board(struct board *b, struct error *err)
{
    if (ftruncate(b->fd, BOARD_BYTES) < 0 || fallocate(b->fd, 0, 0, BOARD_BYTES) < 0 ||
        fcntl(b->fd, F_ADD_SEALS, NEVER_SMALLER) < 0)
        return err_errno(err, ERR_MACHINE, "take %d bytes for ranks to share", BOARD_BYTES);
    if (map_board(b, PROT_READ | PROT_WRITE, err) < 0)
        return -1;
    if (fcntl(b->fd, F_ADD_SEALS, READ_ONLY) < 0)
        return err_errno(err, ERR_MACHINE, "seal memory for ranks to share");
    return 0;
}

int board_make(struct board *ret, struct error *err)
{
    *ret = (struct board){.fd = memfd_create("ringmaster-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (ret->fd < 0)
        return err_errno(err, ERR_MACHINE, "make memory for ranks to share");
    if (fill_board(ret, err) < 0) {
        board_free(ret);
        return -1;
    }
    return 0;
}

int board_map(struct board *ret, int fd, struct error *err)
{
    struct stat file;
    int seals = fcntl(fd, F_GET_SEALS), rc;
    *ret = (struct board){.fd = fd};
    if (fstat(fd, &file) < 0 || file.st_size != BOARD_BYTES || seals < 0 ||
        (seals & NEVER_SMALLER) != NEVER_SMALLER)
        rc = err_set(err, ERR_PROTOCOL, "what it shares is no board");
    else
        rc = map_board(ret, PROT_READ, err);
    if (rc < 0)
        board_free(ret);
    return rc;
}

void board_close_fd(struct board *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

void board_free(struct board *b)
{
    board_close_fd(b);
    if (b->page)
        munmap(b->page, BOARD_BYTES);
    b->page = NULL;
}

uint8_t *board_room(const struct board *b, uint64_t number)
{
    return (uint8_t *)b->page + BOARD_PAGE + number % BOARD_PORTIONS * BOARD_PORTION;
}
