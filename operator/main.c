/* ringmaster-operator: makes TrainingJobs on a Kubernetes cluster happen. See usage below. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/loop/loop.h"
#include "common/os/command_line.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "common/os/secret.h"
#include "operator/app.h"

static const char usage[] =
    "usage: ringmaster-operator [options]\n"
    "  --kubeconfig FILE        the cluster and its user (default: $KUBECONFIG, else the ServiceAccount)\n"
    "  --context NAME           which of the kubeconfig's (default: its current one)\n"
    "  --namespace NAME         look after this namespace alone (default: all)\n"
    "  --worker-image IMAGE     of pods whose template names none\n"
    "  --operator-namespace NAME  where the operator runs, for NetworkPolicies (default: our own)\n"
    "  --leave-uid              leave user, group and fsGroup of the jobs' pods to their namespace "
    "(OpenShift)\n"
    "  --process-snapshots      make jobs with checkpoint.process: CRIU: their programs run as uid 0 with "
    "five\n"
    "                           capabilities and without a seccomp filter (default: they are refused)\n"
    "  --no-network-policies    make no NetworkPolicies\n"
    "  --open-metrics           let NetworkPolicies admit scrapes from everywhere\n"
    "  --metrics-from K=V,...   let them admit scrapes from the namespaces that have these labels\n"
    "  --prices FILE            what machines cost an hour, as lines of CSV; read again when it changes\n"
    "  --lease NAME             of the lease that the leader holds (default ringmaster-operator)\n"
    "  --lease-namespace NAME   its namespace (default: our own); with --namespace give that one\n"
    "  --no-lease               act without a lease, as the only replica\n"
    "  --listen ADDRESS         for /metrics, /healthz and /readyz (default 127.0.0.1)\n"
    "  --port N                 for the same (default 8080; 0: any free one)\n"
    "  --coordinator-port N     where coordinators listen (default 7070)\n"
    "  --node-agent-port N      where `ringmaster-agent node` answers on each machine: workers ask it for\n"
    "                           notices of their machine's end (default: it runs nowhere)\n"
    "  --qps N --burst N        requests to the API server a second, and at once (default 50, 100)\n"
    "  --version                version and commit\n"
    "  --help                   this text\n"
    "For example:\n"
    "  ringmaster-operator --kubeconfig ~/.kube/config --namespace training --no-lease\n"
    "Exit codes: 0 told to stop, 2 usage, 4 anything else (the lease was lost, say).\n";

static int read_number(struct operator_options *out, int option, struct error *err)
{
    long value = 0;
    if (option == 'p' && command_line_number("port", optarg, 0, 65535, &value, err) == 0)
        out->port = (int)value;
    else if (option == 'P' && command_line_number("coordinator-port", optarg, 1, 65535, &value, err) == 0)
        out->coordinator_port = (int)value;
    else if (option == 'A' && command_line_number("node-agent-port", optarg, 1, 65535, &value, err) == 0)
        out->settings.node_port = (int)value;
    else if (option == 'q' && command_line_number("qps", optarg, 1, 100000, &value, err) == 0)
        out->per_second = (double)value;
    else if (option == 'b' && command_line_number("burst", optarg, 1, 100000, &value, err) == 0)
        out->burst = (double)value;
    else
        return -1;
    return 0;
}

static int read_rest(struct operator_options *out, int option, struct error *err)
{
    if (option == 'S')
        out->settings.process_snapshots = true;
    else
        return read_number(out, option, err);
    return 0;
}

static int read_option(struct operator_options *out, int option, struct error *err)
{
    switch (option) {
    case 'k':
        out->kubeconfig = optarg;
        return 0;
    case 'c':
        out->context = optarg;
        return 0;
    case 'n':
        out->namespace = optarg;
        return 0;
    case 'i':
        out->settings.worker_image = optarg;
        return 0;
    case 'o':
        out->settings.operator_namespace = optarg;
        return 0;
    case 'u':
        out->settings.leave_uid = true;
        return 0;
    case 'N':
        out->settings.network_policies = false;
        return 0;
    case 'm':
        out->settings.metrics_open = true;
        return 0;
    case 'M':
        out->settings.metrics_open = true;
        out->settings.metrics_from = &out->metrics_from;
        return labels_read(&out->metrics_from, optarg, err) < 0 ? err_wrap(err, "--metrics-from") : 0;
    case 'C':
        out->prices = optarg;
        return 0;
    case 'l':
        out->lease_name = optarg;
        return 0;
    case 's':
        out->lease_namespace = optarg;
        return 0;
    case 'L':
        out->lease = false;
        return 0;
    case 'a':
        out->listen = optarg;
        return 0;
    default:
        return read_rest(out, option, err);
    }
}

/* *ret_show: what to print instead of anything else; NULL: nothing. */
static int read_arguments(struct operator_options *out, const char **ret_show, int argc, char **argv,
                          struct error *err)
{
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, 'k'},
        {"context", required_argument, NULL, 'c'},
        {"namespace", required_argument, NULL, 'n'},
        {"worker-image", required_argument, NULL, 'i'},
        {"operator-namespace", required_argument, NULL, 'o'},
        {"leave-uid", no_argument, NULL, 'u'},
        {"process-snapshots", no_argument, NULL, 'S'},
        {"no-network-policies", no_argument, NULL, 'N'},
        {"open-metrics", no_argument, NULL, 'm'},
        {"metrics-from", required_argument, NULL, 'M'},
        {"prices", required_argument, NULL, 'C'},
        {"lease", required_argument, NULL, 'l'},
        {"lease-namespace", required_argument, NULL, 's'},
        {"no-lease", no_argument, NULL, 'L'},
        {"listen", required_argument, NULL, 'a'},
        {"port", required_argument, NULL, 'p'},
        {"coordinator-port", required_argument, NULL, 'P'},
        {"node-agent-port", required_argument, NULL, 'A'},
        {"qps", required_argument, NULL, 'q'},
        {"burst", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = command_line_option(argc, argv, options, err)) != -1) {
        if (!option)
            return -1;
        if (option == 'h')
            *ret_show = usage;
        else if (option == 'v')
            *ret_show = "ringmaster-operator " RM_VERSION "\n  commit      " RM_COMMIT "\n";
        else if (read_option(out, option, err) < 0)
            return -1;
    }
    if (optind != argc)
        return err_set(err, ERR_USAGE, "%.80s: there is nothing to say but options; see --help",
                       argv[optind]);
    return 0;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    const char *show = NULL;
    struct operator_options options = {.lease = true,
                                       .lease_name = "ringmaster-operator",
                                       .listen = "127.0.0.1",
                                       .port = 8080,
                                       .settings = {.worker_image = "", .network_policies = true}};
    loop_signal_hold(SIGTERM);
    secret_guard();
    descriptors_raise();
    log_name("operator");
    if (read_arguments(&options, &show, argc, argv, &err) < 0 || log_check(&err) < 0) {
        fprintf(stderr, "ringmaster-operator: %s\n", err.text);
        return error_exit_code(err.code);
    }
    if (show) {
        fputs(show, stdout);
        return 0;
    }
    log_as_json();
    if (app_run(&options, &err) == 0)
        return 0;
    log_warn("stopped", "why=\"%s\"", err.text);
    return error_exit_code(err.code);
}
