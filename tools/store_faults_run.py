"""What tools/store_faults does once its programs are built: many seeds, several at a time, and a count."""

import argparse
import concurrent.futures
import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/object_rig"))

import scripts  # noqa: E402  (its folder is on the path only now)
import servers  # noqa: E402

TOOL = Path(os.environ["RINGMASTER_BIN"]).parent / "tests/checkpoint_tool"


def one(server, seed):
    try:
        return seed, scripts.run_seed(server, servers.BUCKET, TOOL, seed), ""
    except AssertionError as why:
        return seed, (0, 0, 0), str(why)
    finally:
        for kept in ("store/" + servers.BUCKET, f"store/{servers.BUCKET}/.sgwtmp/multipart"):  # memory is small
            shutil.rmtree(server.folder / kept / f"seed-{seed}", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="tools/store_faults")
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--to", dest="last", type=int, default=100)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    seeds = [arguments.seed] if arguments.seed is not None else range(arguments.first, arguments.last + 1)
    server, began, bad, sums = servers.start(), time.monotonic(), [], [0, 0, 0]
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for seed, counts, why in pool.map(lambda s: one(server, s), seeds):
                sums = [a + b for a, b in zip(sums, counts)]
                if why:
                    bad.append(seed)
                    print(f"--- {why}\n", flush=True)
                if (seed - seeds[0] + 1) % 50 == 0:
                    print(f"up to seed {seed}: {len(bad)} bad, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    finally:
        server.stop()
    requests, faulty, failed = sums
    print(f"{len(seeds)} scripts, {requests} requests, {faulty} of them harmed, {failed} saves told to have failed, "
          f"{len(bad)} scripts bad {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
