/* What a trainer and its agent say about data in an object store, on a socket of its own (SOCK_SEQPACKET
 * between two processes of one machine: structs as they are).
 *
 * The agent begins with an answer about file FEED_LISTING: a memory file with the listing's text, and how
 * large chunks are. Then the trainer asks for chunks, in the order in which it will need them, and each is
 * answered once, in any order, with a file that holds its bytes from 0 on. A descriptor and not a name: what
 * the cache deletes meanwhile stays readable. */
#ifndef RM_DATA_FEED_WIRE_H
#define RM_DATA_FEED_WIRE_H

#include <stdint.h>

enum {
    FEED_LISTING = -1,
    FEED_PLACES_LEAST = 4,
    FEED_PLACES_MAX = 256,       /* chunks that a trainer has mapped or asked for */
    FEED_ASKED_MAX = 64,         /* chunks asked for and not answered, and no more than half of its places */
    FEED_BATCH_BYTES = 32 << 20, /* that an agent fetches at a time: it has that much memory for them */
};

struct feed_want {
    int64_t file, chunk; /* bytes [chunk * size, (chunk + 1) * size) of a file, as far as it goes */
};

struct feed_answer {
    int64_t file, chunk; /* of the listing: chunk is the size of chunks */
    int64_t bytes;       /* in the file that comes along */
    int32_t places;      /* with the listing: how many chunks the trainer may have */
    int32_t code;        /* enum error_code: ERR_NONE, or nothing comes along and text says why, */
    int32_t class;       /* enum fault_class: whose fault it is, */
    int32_t person;      /* and whether somebody has to set something right */
    char text[480];
};

#endif
