"""What step.lanes(data) reads: whatever has indices."""

from .library import Error


def reader_of(data, collate, samples, arrays, batch):
    """read(indices) of what step.lanes() was given; arrays: types that take a list of indices at once."""
    if data is None:
        return list
    many = isinstance(data, tuple) and data and all(isinstance(part, arrays) for part in data)
    names = [base.__name__ for base in type(data).__mro__]
    if "IterableDataset" in names:
        raise Error("%s is an IterableDataset, which has no indices: a lane names its samples, so use a dataset with __getitem__ and __len__"
                    % type(data).__name__)
    if "DataLoader" in names:
        raise Error("step.lanes() wants the dataset itself and not a DataLoader: which samples a lane has is told by the job; "
                    "write step.lanes(loader.dataset, collate=loader.collate_fn)")
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        raise Error("%s has no indices: step.lanes() wants what has __getitem__ and __len__" % type(data).__name__)
    for part in data if many else [data]:
        if len(part) < samples:
            raise Error("the data has %d samples, and connect() was told %d" % (len(part), samples))
    if many:
        return lambda indices: tuple(part[indices] for part in data)
    if isinstance(data, arrays):
        return lambda indices: data[indices]
    if hasattr(data, "__getitems__"):
        return lambda indices: (collate or batch)(data.__getitems__(indices))
    return lambda indices: (collate or batch)([data[index] for index in indices])
