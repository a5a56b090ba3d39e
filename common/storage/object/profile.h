/* The shared files of the AWS tools: sections of "name = value", one section a profile. */
#ifndef RM_OBJECT_PROFILE_H
#define RM_OBJECT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct profile {
    char access_key[256], secret_key[256], token[8192];
    char region[64], endpoint[512], ca_file[1024], style[16]; /* s3 addressing_style */
    char signing[8];                                          /* s3 payload_signing_enabled */
    char role_arn[512], role_session[128], token_file[1024];
    bool found;      /* the profile is in one of the files */
    bool by_command; /* it names what isn't supported here: credential_process, sso or source_profile */
};

/* Adds what a file's text says of the profile; what is set already stays. config: sections are called
 * "profile NAME" there, but "default". Lines that are none are passed over, as the AWS tools do. A value that
 * doesn't fit is ERR_USAGE. */
int profile_parse(struct profile *profile, const char *name, bool config, const char *text,
                  struct error *err);

/* Both files as the environment names them, credentials before config. An absent file is an empty one. *name:
 * AWS_PROFILE or "default". `profile` lies in memory for secrets. */
int profile_read(struct profile *profile, const char **name, struct error *err);

#endif
