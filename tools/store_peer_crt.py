"""Moves one object with AWS's C client under Python: the peer of tools/bench store. put|get BUCKET KEY FILE.

Prints {"bytes":..., "seconds":..., "cpu":...} of the transfer alone, without the start of Python.
"""

import json
import os
import resource
import sys
import time

from awscrt import auth, http, io, s3

PART_BYTES = 16 << 20
TARGET_GBPS = 40.0


def main():
    what, bucket, key, path = sys.argv[1:]
    host = os.environ["AWS_ENDPOINT_URL_S3"].removeprefix("http://")
    provider = auth.AwsCredentialsProvider.new_static(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    group = io.EventLoopGroup()
    bootstrap = io.ClientBootstrap(group, io.DefaultHostResolver(group))
    client = s3.S3Client(bootstrap=bootstrap, region=os.environ["AWS_REGION"], credential_provider=provider,
                         tls_mode=s3.S3RequestTlsMode.DISABLED, part_size=PART_BYTES, throughput_target_gbps=TARGET_GBPS)
    headers = http.HttpHeaders([("host", host)])
    target = f"/{bucket}/{key}"
    port = int(host.rpartition(":")[2])
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    if what == "put":
        size = os.path.getsize(path)
        headers.add("content-length", str(size))
        headers.add("content-type", "application/octet-stream")
        request = http.HttpRequest("PUT", target, headers)
        made = client.make_request(type=s3.S3RequestType.PUT_OBJECT, request=request, send_filepath=path,
                                   operation_name="PutObject")
    else:
        request = http.HttpRequest("GET", target, headers)
        made = client.make_request(type=s3.S3RequestType.GET_OBJECT, request=request, recv_filepath=path,
                                   operation_name="GetObject")
    made.finished_future.result(600)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"bytes": os.path.getsize(path), "seconds": seconds, "cpu": cpu, "port": port}))


if __name__ == "__main__":
    main()
