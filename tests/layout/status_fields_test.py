"""Every field of a TrainingJob's status that the operator writes has its place in the CRD, where pruning would lose it silently.

Read from the code and the file, without a cluster: who renames a field learns it within a second."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CRD = ROOT / "crds" / "trainingjob.yaml"
STATUS_JSON = ROOT / "operator" / "core" / "status_json.c"
STATUS_COST = STATUS_JSON.with_name("status_cost.c")
STATUS_KEYS = ROOT / "common" / "wire" / "status.c"


def status_source():
    """The operator's code, with each line that walks a table of keys written out for every key of it."""
    tables = {name: re.findall(r'\] = "(\w+)"', body)
              for name, body in re.findall(r"\*const (\w+_key)s\[\w+\] = \{(.*?)\n\};", STATUS_KEYS.read_text(), re.S)}
    return re.sub(r"js_set_int\((\w+), (\w+_key)\(\w+\), .*;",
                  lambda walk: "\n".join(f'js_set_int({walk[1]}, "{key}", 0);' for key in tables[walk[2]]), STATUS_JSON.read_text() + STATUS_COST.read_text())


def written_paths(source):
    """Each path below the status that the operator's code writes, read from that: which function puts which key into which
    object, and which object or function's result that key holds."""
    holds = {}  # (function, variable) -> [(key, the (function, variable) below it, or None for a plain value)]
    given = {"write": "o"}  # function -> the variable that it returns
    function = None
    for line in source.splitlines():
        begun = re.match(r"(?:static )?(?:struct js \*|void )(\w+)\(", line)
        function = begun.group(1) if begun else function
        for variable, keys in re.findall(r'put_\w+\((\w+)((?:, "\w+")+)', line):
            holds.setdefault((function, variable), []).extend((key, None) for key in re.findall(r"\w+", keys))
        for variable, key, value in re.findall(r'js_set\w*\((\w+), "(\w+)"(?:, (\w+\(?))?', line):
            is_object = re.search(rf'js_set\({variable}, "{key}"', line)
            below = (value[:-1], None) if value.endswith("(") else (function, value)
            below = below if is_object else None
            holds.setdefault((function, variable), []).append((key, below))
        for variable, value in re.findall(r"js_push\((\w+), (\w+)\)", line):
            holds.setdefault((function, variable), []).append(("[]", (function, value)))
        given |= dict.fromkeys([function], "".join(re.findall(r"return (\w+);", line)) or given.get(function))

    def walk(place, path):
        place = (place[0], place[1] or given[place[0]]) if place else None
        if place not in holds:
            yield path
        for key, below in holds.get(place, ()):
            yield from walk(below, f"{path}.{key}" if path else key)

    paths = set(walk(("write", "o"), ""))
    return {path for path in paths if not any(other.startswith(f"{path}.") for other in paths)}


def known_paths(schema, path=""):
    below = schema.get("properties", {})
    if "items" in schema and "properties" in schema["items"]:
        below = {"[]": schema["items"]}
    if not below:
        yield path
    for key, child in below.items():
        yield from known_paths(child, f"{path}.{key}" if path else key)


def test_a_status_of_the_operator_survives_the_schema():
    """Pruning would lose silently what has no place in it. And no place is there for nothing."""
    schema = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert written_paths(status_source()) == set(known_paths(schema["properties"]["status"]))


@pytest.mark.parametrize("right, wrong, lost", [
    ('js_set_int(o, "term"', 'js_set_int(o, "misfit"', "ring.misfit"),  # a name that stands elsewhere
    ('js_set_int(m, "worker"', 'js_set_int(o, "worker"', "ring.worker"),
    ('js_set_int(s, "index"', 'js_set_int(s, "number"', "workers.slots.[].number"),
    ('"spentMicros", "spentRest"', '"spentMicros", "spentLeft"', "cost.spentLeft"),  # the second of a pair
    ('js_set(o, "goodput", goodput_json', 'js_set(o, "lastGoodput", goodput_json', "lastGoodput.ratio")])
def test_a_field_that_is_written_at_another_place_is_found(right, wrong, lost):
    source = status_source()
    assert right in source
    assert lost in written_paths(source.replace(right, wrong)) - written_paths(source)
