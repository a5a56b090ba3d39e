/* What the bytes of a checkpoint are checked by, as its manifest says. */
#ifndef RM_STORE_MANIFEST_HASH_H
#define RM_STORE_MANIFEST_HASH_H

/* How sums of pieces are made: common/storage/checkpoint/piece_hash.h. */
enum manifest_hash {
    MANIFEST_XXH3,   /* fast: finds what chance changes, and nothing that is made to fit */
    MANIFEST_SHA256, /* finds what somebody changes on purpose, too; versions 2 and 3 have no other */
    MANIFEST_WHOLE,  /* of version 1: one SHA-256 of all bytes of a piece */
};

#endif
