"""A program as PyTorch's pages on torchrun have it: what main() raises, @record writes into an error file. The rank of its argument raises."""

import os
import sys
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    while os.environ["RANK"] != sys.argv[1]:
        time.sleep(1)
    raise ValueError("as it was asked to")


main()
