#include "common/os/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/secret.h"

extern char **environ;

static const char *const names[CONFIG_KEYS] = {
    [CONFIG_TRAINER] = "RINGMASTER_TRAINER",
    [CONFIG_TRAINER_ISA] = "RINGMASTER_TRAINER_ISA",
    [CONFIG_FREEZER] = "RINGMASTER_SNAPSHOT",
    [CONFIG_LOG] = "RINGMASTER_LOG",
    [CONFIG_LOG_FORMAT] = "RINGMASTER_LOG_FORMAT",
    [CONFIG_FAULT] = "RINGMASTER_FAULT",
    [CONFIG_FAULT_TOLD] = "RINGMASTER_FAULT_TOLD",
    [CONFIG_NO_COLOR] = "NO_COLOR",
    [CONFIG_CORE_DUMPS] = "RINGMASTER_CORE_DUMPS",
    [CONFIG_BUNDLE] = "RINGMASTER_BUNDLE",
    [CONFIG_CUDA_LIBRARY] = "RINGMASTER_CUDA_LIBRARY",
    [CONFIG_CUBLASLT_LIBRARY] = "RINGMASTER_CUBLASLT_LIBRARY",
    [CONFIG_NCCL_LIBRARY] = "RINGMASTER_NCCL_LIBRARY",
    [CONFIG_NCCL_NEEDS_KEY] = "RINGMASTER_NCCL_NEEDS_KEY",
    [CONFIG_LISTEN] = "RINGMASTER_LISTEN",
    [CONFIG_GPU_KEEPS_STATE] = "RINGMASTER_GPU_KEEPS_STATE",
    [CONFIG_METADATA] = "RINGMASTER_METADATA",
    [CONFIG_METADATA_START] = "RINGMASTER_METADATA_START",
    [CONFIG_POD_CREDENTIALS] = "RINGMASTER_POD_CREDENTIALS",
    [CONFIG_POD_JOB] = "RINGMASTER_POD_JOB",
    [CONFIG_POD_SPEC_SHA256] = "RINGMASTER_POD_SPEC_SHA256",
    [CONFIG_POD_GENERATION] = "RINGMASTER_POD_GENERATION",
    [CONFIG_POD_SAVES] = "RINGMASTER_POD_SAVES",
    [CONFIG_POD_METRICS_PORT] = "RINGMASTER_POD_METRICS_PORT",
    [CONFIG_POD_IMAGE] = "RINGMASTER_POD_IMAGE",
    [CONFIG_POD_IMAGES] = "RINGMASTER_POD_IMAGES",
    [CONFIG_POD_NODE_NAME] = "RINGMASTER_NODE_NAME",
    [CONFIG_POD_HOST_IP] = "RINGMASTER_POD_HOST_IP",
    [CONFIG_POD_NODE_PORT] = "RINGMASTER_POD_NODE_PORT",
    [CONFIG_POD_ATTEMPT] = "RINGMASTER_POD_ATTEMPT",
    [CONFIG_POD_IMAGES_BYTES] = "RINGMASTER_POD_IMAGES_BYTES",
    [CONFIG_POD_OLDER_KEY] = "RINGMASTER_POD_OLDER_KEY",
    [CONFIG_AWS_ACCESS_KEY_ID] = "AWS_ACCESS_KEY_ID",
    [CONFIG_AWS_SECRET_ACCESS_KEY] = "AWS_SECRET_ACCESS_KEY",
    [CONFIG_AWS_SESSION_TOKEN] = "AWS_SESSION_TOKEN",
    [CONFIG_AWS_PROFILE] = "AWS_PROFILE",
    [CONFIG_AWS_SHARED_CREDENTIALS_FILE] = "AWS_SHARED_CREDENTIALS_FILE",
    [CONFIG_AWS_CONFIG_FILE] = "AWS_CONFIG_FILE",
    [CONFIG_AWS_REGION] = "AWS_REGION",
    [CONFIG_AWS_DEFAULT_REGION] = "AWS_DEFAULT_REGION",
    [CONFIG_AWS_ENDPOINT_URL] = "AWS_ENDPOINT_URL",
    [CONFIG_AWS_ENDPOINT_URL_S3] = "AWS_ENDPOINT_URL_S3",
    [CONFIG_AWS_ENDPOINT_URL_STS] = "AWS_ENDPOINT_URL_STS",
    [CONFIG_AWS_CA_BUNDLE] = "AWS_CA_BUNDLE",
    [CONFIG_AWS_REQUEST_CHECKSUM_CALCULATION] = "AWS_REQUEST_CHECKSUM_CALCULATION",
    [CONFIG_AWS_WEB_IDENTITY_TOKEN_FILE] = "AWS_WEB_IDENTITY_TOKEN_FILE",
    [CONFIG_AWS_ROLE_ARN] = "AWS_ROLE_ARN",
    [CONFIG_AWS_ROLE_SESSION_NAME] = "AWS_ROLE_SESSION_NAME",
    [CONFIG_AWS_CONTAINER_FULL_URI] = "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    [CONFIG_AWS_CONTAINER_RELATIVE_URI] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    [CONFIG_AWS_CONTAINER_TOKEN] = "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    [CONFIG_AWS_CONTAINER_TOKEN_FILE] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    [CONFIG_AWS_METADATA_ENDPOINT] = "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    [CONFIG_AWS_METADATA_DISABLED] = "AWS_EC2_METADATA_DISABLED",
    [CONFIG_GCE_METADATA_HOST] = "GCE_METADATA_HOST",
    [CONFIG_GOOGLE_ENDPOINT] = "RINGMASTER_GOOGLE_ENDPOINT",
    [CONFIG_KUBERNETES_HOST] = "KUBERNETES_SERVICE_HOST",
    [CONFIG_KUBERNETES_PORT] = "KUBERNETES_SERVICE_PORT",
    [CONFIG_KUBECONFIG] = "KUBECONFIG",
    [CONFIG_PATH] = "PATH",
    [CONFIG_TMPDIR] = "TMPDIR",
    [CONFIG_HOME] = "HOME",
};

const char *config_get(enum config_key key)
{
    const char *value = getenv(names[key]);
    return value && *value ? value : NULL;
}

const char *config_name(enum config_key key)
{
    return names[key];
}

void config_set(enum config_key key, const char *value)
{
    setenv(names[key], value, 1);
}

static const enum config_key secrets[] = {CONFIG_AWS_SECRET_ACCESS_KEY, CONFIG_AWS_SESSION_TOKEN,
                                          CONFIG_AWS_CONTAINER_TOKEN, CONFIG_AWS_ACCESS_KEY_ID};
enum { SECRETS = sizeof secrets / sizeof *secrets };

/* What putenv is given becomes part of the environment and is never given back. */
static void hide(const char *name)
{
    char *value = getenv(name);
    size_t room = strlen(name) + 1 + (value ? strlen(value) : 0) + 1;
    char *hidden = value && *value ? secret_open(room) : NULL;
    if (!hidden)
        return;
    snprintf(hidden, room, "%s=%s", name, value);
    if (putenv(hidden) == 0)
        explicit_bzero(value, strlen(value));
}

void config_hide_secrets(void)
{
    for (int i = 0; i < SECRETS; i++)
        hide(names[secrets[i]]);
}

static bool is_secret(const char *line)
{
    for (int i = 0; i < SECRETS; i++) {
        size_t length = strlen(names[secrets[i]]);
        if (!strncmp(line, names[secrets[i]], length) && line[length] == '=')
            return true;
    }
    return false;
}

char **config_without_secrets(void)
{
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (!is_secret(environ[i]))
            list[kept++] = environ[i];
    return list;
}
