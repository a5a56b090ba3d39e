/* The environment variables that Ringmaster reads: the only caller of getenv. Each is documented in docs/. */
#ifndef RM_OS_CONFIG_H
#define RM_OS_CONFIG_H

enum config_key {
    CONFIG_TRAINER,     /* RINGMASTER_TRAINER: path of the trainer program instead of the agent's sibling */
    CONFIG_TRAINER_ISA, /* RINGMASTER_TRAINER_ISA: instruction set by force, over trainer.isa */
    CONFIG_FREEZER,     /* RINGMASTER_SNAPSHOT: path of ringmaster-snapshot instead of the agent's sibling */
    CONFIG_LOG,         /* RINGMASTER_LOG: debug | info | warn (default) */
    CONFIG_LOG_FORMAT,  /* RINGMASTER_LOG_FORMAT: json | text (default) */
    CONFIG_FAULT,       /* RINGMASTER_FAULT: NAME[:N][@WHO][/stop], test builds only; see fault.h */
    CONFIG_FAULT_TOLD,  /* RINGMASTER_FAULT_TOLD: of fault.c alone, which sets it: who is told of a strike */
    CONFIG_NO_COLOR,    /* NO_COLOR: no colours on a terminal */
    CONFIG_CORE_DUMPS,  /* RINGMASTER_CORE_DUMPS: core dumps are allowed; see secret.h */
    CONFIG_BUNDLE,      /* RINGMASTER_BUNDLE: where the bundle lies that this program is of; set by its first
                           program (agent/bundle) */

    CONFIG_CUDA_LIBRARY,     /* RINGMASTER_CUDA_LIBRARY: path of libcuda.so.1, looked for nowhere else */
    CONFIG_CUBLASLT_LIBRARY, /* RINGMASTER_CUBLASLT_LIBRARY: path of libcublasLt.so.13, likewise */
    CONFIG_NCCL_LIBRARY,     /* RINGMASTER_NCCL_LIBRARY: path of libnccl.so.2, likewise */
    CONFIG_NCCL_NEEDS_KEY,   /* RINGMASTER_NCCL_NEEDS_KEY: set to anything, NCCL may not go without a key */
    CONFIG_LISTEN, /* RINGMASTER_LISTEN: "0": newcomers get the state while all wait, as without it under
                      `run`; anything else: while the others train, as without it in pods */
    CONFIG_GPU_KEEPS_STATE, /* RINGMASTER_GPU_KEEPS_STATE: set to anything, a GPU's state outlives its trainer
                             */
    CONFIG_METADATA,       /* RINGMASTER_METADATA: where the machine's metadata is asked for notices; in a pod
                              nothing where it is not set */
    CONFIG_METADATA_START, /* RINGMASTER_METADATA_START: "true": the machine is this worker's alone, and may
                              go once that has left */

    /* By the operator, which may be newer than a job's image: what an image does not know it passes over,
     * where an option that it does not know would end it. */
    CONFIG_POD_CREDENTIALS, /* RINGMASTER_POD_CREDENTIALS: a Secret's keys as files */
    CONFIG_POD_JOB,         /* RINGMASTER_POD_JOB: what the coordinator's status calls the job */
    CONFIG_POD_SPEC_SHA256, /* RINGMASTER_POD_SPEC_SHA256: of the spec, any other is refused */
    CONFIG_POD_GENERATION,  /* RINGMASTER_POD_GENERATION: generations of the job before this coordinator */
    CONFIG_POD_SAVES, /* RINGMASTER_POD_SAVES: what the coordinators before this one knew of saves and losses
                       */
    CONFIG_POD_METRICS_PORT, /* RINGMASTER_POD_METRICS_PORT: the coordinator's second port, for /metrics alone
                              */
    CONFIG_POD_IMAGE,        /* RINGMASTER_POD_IMAGE: the container's image with its digest */
    CONFIG_POD_IMAGES,       /* RINGMASTER_POD_IMAGES: the folder on disk that a snapshot's files lie in */
    CONFIG_POD_NODE_NAME,    /* RINGMASTER_NODE_NAME: the pod's machine, by the downward API; and... */
    CONFIG_POD_HOST_IP,      /* RINGMASTER_POD_HOST_IP: ...its address */
    CONFIG_POD_NODE_PORT,    /* RINGMASTER_POD_NODE_PORT: where `ringmaster-agent node` answers there */
    CONFIG_POD_ATTEMPT, /* RINGMASTER_POD_ATTEMPT: of worker 0, for a coordinator: below it all were given up
                         */
    CONFIG_POD_IMAGES_BYTES, /* RINGMASTER_POD_IMAGES_BYTES: how many bytes may lie in that folder */
    CONFIG_POD_OLDER_KEY, /* RINGMASTER_POD_OLDER_KEY: file with the key of the job whose snapshots are there
                           */

    /* What the AWS tools read, with their meaning; see docs/object-store.md. */
    CONFIG_AWS_ACCESS_KEY_ID,
    CONFIG_AWS_SECRET_ACCESS_KEY,
    CONFIG_AWS_SESSION_TOKEN,
    CONFIG_AWS_PROFILE,
    CONFIG_AWS_SHARED_CREDENTIALS_FILE,
    CONFIG_AWS_CONFIG_FILE,
    CONFIG_AWS_REGION,
    CONFIG_AWS_DEFAULT_REGION,
    CONFIG_AWS_ENDPOINT_URL,
    CONFIG_AWS_ENDPOINT_URL_S3,
    CONFIG_AWS_ENDPOINT_URL_STS,
    CONFIG_AWS_CA_BUNDLE,
    CONFIG_AWS_REQUEST_CHECKSUM_CALCULATION,
    CONFIG_AWS_WEB_IDENTITY_TOKEN_FILE,
    CONFIG_AWS_ROLE_ARN,
    CONFIG_AWS_ROLE_SESSION_NAME,
    CONFIG_AWS_CONTAINER_FULL_URI,
    CONFIG_AWS_CONTAINER_RELATIVE_URI,
    CONFIG_AWS_CONTAINER_TOKEN,
    CONFIG_AWS_CONTAINER_TOKEN_FILE,
    CONFIG_AWS_METADATA_ENDPOINT,
    CONFIG_AWS_METADATA_DISABLED,
    /* And Google's libraries: host or host:port of the metadata server. */
    CONFIG_GCE_METADATA_HOST,
    CONFIG_GOOGLE_ENDPOINT, /* RINGMASTER_GOOGLE_ENDPOINT: an endpoint that may have a Google service
                               account's token though its name is not of googleapis.com */
    /* Where a pod finds its API server, and kubectl its kubeconfig. */
    CONFIG_KUBERNETES_HOST,
    CONFIG_KUBERNETES_PORT,
    CONFIG_KUBECONFIG,
    CONFIG_PATH,   /* PATH: where a program's name is looked for before a run of it */
    CONFIG_TMPDIR, /* TMPDIR: where a program's error files lie; else /tmp */
    CONFIG_HOME,   /* HOME: where .aws/credentials and .aws/config lie */
    CONFIG_KEYS
};

/* NULL where it is unset or empty. */
const char *config_get(enum config_key key);
/* For this process and those that it starts. */
void config_set(enum config_key key, const char *value);
/* What the variable is called: for a sentence to a person. */
const char *config_name(enum config_key key);

/* Moves the values that are secrets into memory for secrets and wipes where they were. config_get and
 * children find them as before. Before there are threads; where there is no memory they stay. */
void config_hide_secrets(void);
/* The environment for a child that has no business with any store: without whose requests those are. An array
 * for free(), with borrowed strings; NULL: no memory. */
char **config_without_secrets(void);

#endif
