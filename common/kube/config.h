/* Where the API server is and who we are there: from a kubeconfig or from a pod's ServiceAccount.
 *
 * Certificates and keys are kept as PEM text in memory. A token that comes from a file is read again every
 * minute, because the kubelet puts a new one there before the old one ends. Credential plug-ins (`exec`,
 * `auth-provider`) are refused with a sentence: no program of ours starts another one for that. */
#ifndef RM_KUBE_CONFIG_H
#define RM_KUBE_CONFIG_H

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/base/time.h"

enum { KUBE_TEXT_MAX = 1 << 20 /* bytes of a kubeconfig, a certificate or a token */ };

struct kube_config {
    char server[256];      /* "https://10.96.0.1:443", without a slash at the end */
    char namespace[64];    /* of the context or of the ServiceAccount; "default" where none is named */
    struct str ca;         /* PEM; empty: the system's certificates */
    struct str cert, key;  /* PEM; empty: none */
    struct str token;      /* empty: none */
    char token_file[1024]; /* "": the token never changes */
    rm_time token_read;    /* when */
};

/* The ServiceAccount of the pod that this program runs in. folder: where its files lie, NULL is where
 * Kubernetes mounts them. ERR_NOT_FOUND outside a pod. */
int kube_config_in_pod(struct kube_config *ret, const char *folder, rm_time now, struct error *err);

/* A kubeconfig. context NULL: the one that it names as current. Relative paths in it are relative to it. */
int kube_config_read(struct kube_config *ret, const char *path, const char *context, rm_time now,
                     struct error *err);

/* Reads a token's file again where a minute has passed, or `stale` says that the server refused the token.
 * What can't be read leaves the old token in place. */
void kube_config_refresh(struct kube_config *config, bool stale, rm_time now);

void kube_config_clear(struct kube_config *config); /* the secrets are wiped */

#endif
