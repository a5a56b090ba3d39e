"""What holds each command that a page shows (pages.py finds them); a command that is in no table fails, and so does a row that no page shows.

RUN: tests/e2e/docs_test.py runs it as it stands, story by story, in the order in which a reader would.
CLUSTER, NODES: tests/cluster/docs_test.py does so on a real API server, and on a cluster that has nodes.
ASKED: what takes minutes or hours, or changes this machine: it is started with one word more that there is not, and has to complain
of that word alone, so that each word before it was read by who reads it for everybody.
ELSEWHERE: another test runs it, or the check itself does; the words of the command stand there.
ABSENT: what can't be had here; docs/testing.md has the same table.

A command that another one begins with, word by word (`kubectl get tj`), is a name for it and needs no row."""

RUN = {
    "quick start": [
        "build/release/bin/ringmaster run deploy/examples/quickstart.yaml --drill kill:1@60 --drill join@120",
        "tools/quickstart",
    ],
    "own job": [
        "tools/build",
        "build/release/bin/ringmaster check job.yaml",
        "build/release/bin/ringmaster run job.yaml",
        "ringmaster run job.yaml",
        "ringmaster run job.yaml --overwrite --drill kill:1@100 --drill join@200 --drill term:0@300",
        "ringmaster run job.yaml --overwrite --drill random:11",
        'ringmaster generate checkpoints/final --prompt "Once" --tokens 200',
        "ringmaster checkpoint verify checkpoints",
        "tools/weights_sha256.py FOLDER",
    ],
    "command line": [
        "ringmaster check FILE [--set spec.x.y=VALUE]... [--output text|json]",
        "ringmaster run FILE [--set spec.x.y=VALUE]... [--drill D]... [--output text|json] [--overwrite] [--port N]",
        "ringmaster generate FOLDER [--prompt TEXT] [--tokens N] [--seed N] [--temperature X]",
        "ringmaster data index FOLDER",
        "ringmaster checkpoint list URI [--wide] [--output text|json]",
        "ringmaster checkpoint verify URI",
        "ringmaster checkpoint export URI TARGET [--name NAME]",
        "ringmaster checkpoint delete URI --name NAME|--all [--endpoint URL] [--region NAME] [--yes]",
        "ringmaster completion bash|zsh|fish",
        "source <(ringmaster completion bash)",
        "ringmaster manual | man -l -",
        "ringmaster --version",
    ],
    "installed": [
        "tools/install-packages",
        "tools/install-packages --test",
        "cmake --install build/release --component library --prefix DIR",
        "cmake --preset test && cmake --build --preset test",
        "cmake --preset tsan && cmake --build --preset tsan",
        "cmake --preset arm64 && cmake --build --preset arm64",
    ],
    "tutorial": [
        "ringmaster check deploy/examples/gpt2-124m.yaml --set spec.trainer.data.uri=shards --set spec.checkpoint.uri=checkpoints",
        "ringmaster checkpoint verify s3://models/gpt2-124m",
        "ringmaster checkpoint export s3://models/gpt2-124m model",
        "ringmaster checkpoint export s3://models/gpt2-124m /models/gpt2-124m/final",
        "cp tokenizer.json model/",
        'ringmaster generate model --prompt "Once upon a time" --tokens 50',
    ],
    "trainer": [
        "ringmaster-trainer fingerprint --probe",
        "ringmaster-trainer bench-step [--precision fp32|bf16] [--recompute true|false]",
    ],
    "simulator": [
        "ringmaster-sim --seeds 1..10000",
        "ringmaster-sim --seed 5290 --trace",
        "ringmaster-sim --seeds 1..5000 --plant torn-receive --expect-found",
        "ringmaster-sim --seeds 1..100000 --counts",
        "ringmaster-sim --seed 93190 --trace",
        "ringmaster-sim --seed 93190 --without 0x200 --trace",
        "ringmaster-sim --crowd --seeds 1..500",
    ],
    "tests by hand": [
        "build/test/tests/NAME_test --filter 'suite/name'",
        "/usr/bin/python3 -m pytest tests/e2e/exact_test.py -k kill",
        "tools/format",
    ],
    "store": [  # on a server that has to be fetched once; skipped where there is no network for that
        "tests/object_rig/serve",
        "tests/object_rig/serve -- build/test/tests/contract_test",
        "tests/object_rig/serve moto",
    ],
    # Started by other programs: what they say to who starts them by hand names them, with the code of a wrong command line.
    "names": [
        "ringmaster-agent launch",
        "ringmaster-agent exec",
        "ringmaster-trainer work",
        "ringmaster-trainer generate",
    ],
}

CLUSTER = [  # in the order in which they are run
    "helm install ringmaster charts/ringmaster --namespace ringmaster-system --create-namespace "
    "--set image.operator=REGISTRY/ringmaster-operator --set image.worker=REGISTRY/ringmaster-worker",
    "helm upgrade ringmaster charts/ringmaster --namespace ringmaster-system --reset-then-reuse-values",
    "kubectl -n ringmaster-system create configmap machine-prices --from-file=prices.csv",
    "kubectl -n ringmaster-system logs -l app.kubernetes.io/name=ringmaster-operator --prefix --tail=50",
    "kubectl explain tj.spec --recursive",
    "kubectl apply -f deploy/examples/store.yaml -f deploy/examples/quickstart-cluster.yaml",
    "kubectl create secret generic s3-credentials --from-literal=AWS_ACCESS_KEY_ID=... --from-literal=AWS_SECRET_ACCESS_KEY=...",
    "kubectl apply -f deploy/examples/s3.yaml",
    "kubectl apply -f deploy/examples/gpt2-124m.yaml",
    "kubectl apply -f deploy/examples/elastic.yaml",
    "kubectl apply -f deploy/examples/launch.yaml",
    "kubectl get tj -w",
    "kubectl get tj gpt2-124m -w",
    "kubectl get tj loop -w",
    "kubectl get tj ddp -w",
    "kubectl get tj -o wide",
    "kubectl get events",
    "kubectl describe pod",
    "kubectl describe tj quickstart",
    "kubectl describe tj gpt2-124m",
    "kubectl scale tj/quickstart --replicas=2",
    "kubectl scale tj/gpt2-124m --replicas=12",
    "kubectl scale tj/gpt-s3 --replicas=6",
    "kubectl scale tj/loop --replicas=5",
    "kubectl delete pod -l ringmaster.dev/worker=1",
    "kubectl logs -f -l ringmaster.dev/job=ddp,ringmaster.dev/role=worker --prefix",
    "kubectl wait --for=condition=Finished tj/quickstart --timeout=15m",
    "kubectl wait --for=condition=Finished tj/gpt2-124m --timeout=168h",
    "kubectl wait --for=condition=Finished tj/gpt-s3 --timeout=24h",
    "kubectl get tj quickstart -o jsonpath='{.status.result}'",
    "kubectl get tj gpt-s3 -o jsonpath='{.status.result}'",
    "kubectl delete tj gpt2-124m",
    "helm uninstall ringmaster --namespace ringmaster-system",
    "helm install ringmaster charts/ringmaster --namespace ringmaster-system --create-namespace "
    "--set image.operator=REGISTRY/ringmaster-operator:TAG --set image.worker=REGISTRY/ringmaster-worker:TAG",
    "helm install another charts/ringmaster --namespace ml --create-namespace --take-ownership",
    "kubectl delete crd trainingjobs.ringmaster.dev",
    "kubectl apply --server-side -f deploy/install.yaml",
]

NODES = ["tests/cluster/in kubectl get pods -A", "tests/cluster/node-in 2 ps ax"]

ASKED = [
    "tools/check --fast", "tools/check --all", "tools/check --arm64", "tools/check --explore",
    "tools/campaign --seeds 0-499", "tools/campaign --seeds A-B",
    "tools/fuzz message --seconds 3600 --keep FOLDER", "tools/analyze --anew",
    "tools/valgrind rdzv_test", "tools/valgrind --run",
    "tools/store_faults --to 1000", "tools/store_faults --from 1 --to 150",
    "RINGMASTER_BIN=build/test/bin tools/store_faults --from 1 --to 1000 --jobs 16",
    "tools/bench recovery", "tools/bench join", "tools/bench train", "tools/bench checkpoint", "tools/bench store", "tools/bench elastic --python P", "tools/bench elastic --python P --save-every 50", "tools/bench ring", "tools/bench slow",
    "tools/bench gpu", "tools/bench spot", "tools/bench spot --trace FILE...", "tools/bench spot --only notices",
    "tools/bench spot --only policy --hours 24", "tools/bench spot --only policy --hours 24 --trace FILE...", "tools/bench spot --only meter --hours 24 --trace FILE...",
    "tools/bench spot --only meter", "tools/bench spot --only meter --hours 24",
    "tools/bench spot --only processes", "tools/bench spot --only processes --python P", "tools/bench spot --only calm",
    "tools/bench operator --nodes", "tools/bench operator --running 10000", "tools/bench snapshot", "tools/bench snapshot --rounds 2", "tools/bench all --write", "tools/bench train --rounds 1", "tools/bench compare --with FOLDER",
    "RINGMASTER_BIN=... tools/bench recovery --kills 12",
    "tests/cluster/up", "tests/cluster/up --api", "tests/cluster/down", "tests/cluster/status", "tests/cluster/node-up 4",
    "tests/cluster/node-kill 2", "tests/cluster/node-clean 2", "tests/cluster/node-cut 2", "tests/cluster/node-join 2",
    "tests/cluster/taint 2 maintenance NoExecute", "tests/cluster/taint 2 maintenance NoExecute-", "tests/cluster/load-image X.tar",
    "tests/cluster/stop-service api-server", "tests/cluster/start-api-server",
]

ELSEWHERE = {  # the test, or the part of the check, and behind it what it calls
    "/opt/ringmaster/bin/ringmaster-agent install DIR": ["tests/e2e/bundle_test.py::test_it_copies_itself_as_often_as_it_is_told_to",
                                                         "tests/e2e/bundle_test.py::INSTALL"],
    "ringmaster-agent coordinate --pod": ["tests/e2e/pod_test.py::test_pods_train_to_the_same_weights_as_a_run_and_leave_the_result_behind",
                                          "tests/e2e/pod_rig.py::coordinator", "tests/e2e/pod_rig.py::Program"],
    "ringmaster-agent work --pod": ["tests/e2e/pod_test.py::test_pods_train_to_the_same_weights_as_a_run_and_leave_the_result_behind",
                                    "tests/e2e/pod_rig.py::worker", "tests/e2e/pod_rig.py::Program"],
    "ringmaster-agent node --listen IP [--port 7072] [--metadata URL]": [
        "tests/e2e/notice_test.py::test_a_node_listens_at_no_address_that_stands_for_all_and_says_why"],
    "cmake --install build/release": ["tests/e2e/package_test.py::test_an_installed_one_is_whole_and_trains"],
    "cmake --install build/release --component bundle --prefix DIR": [
        "tests/e2e/bundle_test.py::test_it_copies_itself_as_often_as_it_is_told_to", "tests/e2e/stranger_rig.py::install"],
    "cpack --config build/release/CPackConfig.cmake -G DEB": [
        "tests/e2e/package_test.py::test_a_package_is_built_installed_and_leaves_nothing_when_it_is_removed"],
    "curl HOST:7072/metrics | promtool check metrics": [
        "tests/e2e/metrics_test.py::test_what_the_pages_tell_is_what_the_docs_name_and_what_prometheus_answers_from",
        "tests/prometheus_rig/prometheus.py::complaints"],
    "promtool check metrics": ["tests/cluster/api_test.py::test_promtool_has_nothing_against_the_operators_metrics_and_the_docs_name_them",
                               "tests/prometheus_rig/prometheus.py::complaints"],
    "tools/sbom IMAGE.tar": ["tests/e2e/sbom_test.py::test_an_archives_list_is_that_of_its_highest_layer"],
    "tools/text_to_shards.py --tokenizer tokenizer.json --between '<|endoftext|>' --output shards texts/": [
        "tests/e2e/shards_tool_test.py::test_a_tokenizer_s_numbers_are_written_and_decode_to_the_text"],
    "tools/text_to_shards.py --tokenizer gpt2/tokenizer.json --header llm.c --output shards books/*.txt": [
        "tests/e2e/tokens_test.py::test_a_model_of_tokens_takes_its_tokenizer_along_and_writes_what_transformers_writes",
        "tests/e2e/tokens_test.py::job_of_bpe_tokens"],
    "torchrun ...": ["tests/e2e/launch_test.py::test_a_torchrun_that_says_itself_where_it_meets_is_refused"],
    "python -m torch.distributed.run ...": ["tests/e2e/preload_test.py::test_preload_is_refused_for_what_is_no_python"],
    "python -u -m torch.distributed.run": ["tests/unit/agent/launch/core/environment_test.c::torchrun_is_known_by_its_words"],
    "nohup ringmaster run": ["tests/e2e/launch_test.py::test_a_run_under_nohup_outlives_its_terminal"],
    "helm install --wait": ["tests/cluster/install_test.py::test_helm_test_trains_twenty_steps", "tests/cluster/node_rig.py::install_operator"],
    "helm test ringmaster --namespace ringmaster-system": ["tests/cluster/install_test.py::test_helm_test_trains_twenty_steps"],
    "kubectl logs POD": ["tests/cluster/install_test.py::test_the_quick_start_is_applied_is_watched_and_ends_with_the_weights_of_a_local_run",
                         "tests/cluster/node_rig.py::run_file", "tests/cluster/node_rig.py::run_events"],
    "kubectl logs POD -c NAME": ["tests/cluster/stranger_elastic_test.py::test_a_numpy_loop_in_an_image_of_debians_python_ends_with_the_weights_of_a_local_run",
                                 "tests/cluster/stranger_elastic_test.py::check_stayed"],
    "tests/cluster/build": ["tools/check_all.py::cluster_ground"],
    "tests/arm64/install": ["tools/check_all.py::arm64_ground"],
    "tests/reference/install": ["tools/check_all.py::fetch_references"],
    "tests/reference/install-tokenizers": ["tests/e2e/shards_tool_test.py::test_a_tokenizer_s_numbers_are_written_and_decode_to_the_text",
                                           "tests/e2e/reference_rig.py::python_with_tokenizers"],
    "kubectl get --raw '/apis/external.metrics.k8s.io/v1beta1/namespaces/NAMESPACE/ringmaster_operator_job_workers_needed?"
    "labelSelector=training_job%3Dgpt-hpa'": [
        "tests/cluster/autoscaler_test.py::test_the_hpa_of_the_examples_gives_a_job_as_many_workers_as_its_deadline_needs",
        "tests/cluster/autoscaler_test.py::values"],
    "tools/gpu-check pack": ["tests/e2e/gpu_check_test.py::test_a_pack_that_is_too_large_is_refused_and_a_folder_that_is_none_too",
                             "tests/e2e/gpu_check_test.py::a_pack"],
    "build/gpu-check/gpu-check run": ["tests/e2e/gpu_check_test.py::test_a_run_on_the_standins_goes_through_all_its_parts",
                                      "tests/e2e/gpu_check_test.py::checked"],
    "tests/offline": ["tools/check_all.py::cluster_ground"],
    "tools/install-packages --cluster": ["tools/check_all.py::cluster_ground"],
    "tools/install-packages --cuda": ["tools/check_all.py::cuda_ground"],
    "tools/install-packages --arm64": ["tools/check_all.py::arm64_ground"],
}

ABSENT = {
    "aws s3 sync shards s3://corpora/shards": "the AWS tools, and an account",
    "aws s3 cp tokenizer.json s3://corpora/tokenizer.json": "the AWS tools, and an account",
    "docker build -f deploy/Dockerfile --target operator -t REGISTRY/ringmaster-operator .": "Docker: buildah makes these images for the cluster's tests",
    "docker build -f deploy/Dockerfile --target snapshots -t ringmaster-snapshots .": "Docker: buildah makes this image for the cluster's tests, when it is asked for by name",
    "docker build -f deploy/Dockerfile --target worker -t ringmaster-worker .": "Docker: buildah makes these images for the cluster's tests",
    'docker run --rm --shm-size 1g --tmpfs /tmp -v "$PWD/deploy/examples:/job:ro" --entrypoint ringmaster REGISTRY/ringmaster-worker '
    "run /job/quickstart-cluster.yaml --set spec.checkpoint.uri=file:///tmp/alone": "Docker: `install_test.py` runs that file in a pod of the image, `docs_test.py` these words by themselves",
    "pip install tokenizers": "a network",
    "kubectl port-forward service/gpt2-124m 8000 & curl localhost:8000/v1/completions -H 'Content-Type: application/json' "
    """-d '{"model": "gpt2-124m", "prompt": "Once upon a time", "max_tokens": 50}'""": "a GPU node with vLLM",
    "sysctl kernel.core_pattern=core": "it changes the whole machine",
    "ulimit -Hc unlimited": "the right to raise a limit",
}

# Options that a sentence names without their command: who takes them, with values. Each is given to that program.
OPTIONS = {
    "tools/check": ["--no-cluster"],
    "tools/gpu-check run": ["--standins"],
    "tools/campaign --seeds 0-0": ["--kind drills", "--kind chaos", "--kind crashes"],
    "ringmaster-agent coordinate": ["--job FILE", "--key-file FILE", "--grace 5", "--coordinator HOST:1", "--termination-log FILE", "--term 2", "--told 1",
                                    "--evaluated 1", "--saved 1", "--lost-at 1", "--spent-at 1", "--spent 1,2,3,4,5", "--saves 1,2,3,4,5"],
    "ringmaster-operator": [
        "--kubeconfig FILE", "--context NAME", "--worker-image IMAGE", "--operator-namespace NAME", "--no-network-policies", "--open-metrics",
        "--metrics-from KEY=VALUE", "--leave-uid", "--process-snapshots", "--prices FILE", "--lease NAME", "--lease-namespace NAME", "--no-lease", "--coordinator-port 1",
        "--node-agent-port 1", "--qps 1", "--burst 1"],
}

# --help is given to each command of ringmaster by a test of its own; the others are of helm, torchrun, docker, and a tool that needs torch.
OPTIONS_OF_OTHERS = ["--help", "--reuse-values", "--standalone", "--nnodes", "--rdzv-", "--build-arg", "--bf16"]
