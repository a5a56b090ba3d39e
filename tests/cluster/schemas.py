"""JSON schemas of all that the API server knows, made from its own OpenAPI, and manifests held to them by kubeconform.

They are stricter than what is published: an object has no field that its schema doesn't name. Kinds of a CRD are made from the CRD;
where one takes a pod as it is (and leaves it to whoever makes that pod to find out), the pod is held to Kubernetes' own schema.
"""

import copy
import json
import subprocess

import cluster as clusters

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
EITHER = {"oneOf": [{"type": "string"}, {"type": "integer"}]}


def strict(schema):
    """A copy in which objects are closed, and without what only people read."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string") is True:
        return EITHER
    found = {key: strict(value) for key, value in schema.items() if not (key in ("description", "default") and not isinstance(value, dict))}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        found["properties"] = {name: strict(value) for name, value in properties.items()}  # also those named `description`
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    return found


def references(schema):
    """Names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def with_pods(schema):
    """A CRD's schema with the pods in it, which it takes as they are, described."""
    if isinstance(schema, dict):
        if schema.get("x-kubernetes-preserve-unknown-fields") and "containers" in schema.get("properties", {}):
            return {"$ref": f"#/definitions/{POD_SPEC}"}
        return {key: with_pods(value) for key, value in schema.items()}
    return [with_pods(each) for each in schema] if isinstance(schema, list) else schema


class Schemas:
    """Files in a folder, named as kubeconform is told to look for them."""

    def __init__(self, kubectl, folder):
        self.folder = folder
        self.place = str(folder / "{{.ResourceKind}}{{.KindSuffix}}.json")
        api = json.loads(kubectl("get", "--raw", "/openapi/v2"))
        self.definitions = {name: strict(schema) for name, schema in api["definitions"].items()}
        self.definitions[QUANTITY] = {"type": ["string", "number"]}
        for name, schema in api["definitions"].items():
            for kind in schema.get("x-kubernetes-group-version-kind", []):
                self.write(kind["group"], kind["version"], kind["kind"], {"$ref": f"#/definitions/{name}"})

    def add(self, crd):
        """The kinds of a CustomResourceDefinition, in place of what the API server says of them."""
        spec = crd["spec"]
        for version in spec["versions"]:
            schema = strict(with_pods(copy.deepcopy(version["schema"]["openAPIV3Schema"])))
            schema["properties"]["metadata"] = {"$ref": f"#/definitions/{OBJECT_META}"}
            self.write(spec["group"], version["name"], spec["names"]["kind"], schema)

    def write(self, group, version, kind, schema):
        needed, left = {}, list(references(schema))
        while left:
            name = left.pop()
            if name not in needed:
                needed[name] = self.definitions[name]
                left += references(needed[name])
        suffix = f"{group.partition('.')[0]}-{version}" if group else version
        (self.folder / f"{kind.lower()}-{suffix}.json").write_text(json.dumps({**schema, "definitions": needed}))

    def complaints(self, manifests):
        """What kubeconform has against YAML text: ["Kind/name: sentence"]. A kind without a schema is one as well."""
        done = subprocess.run([str(clusters.BIN / "kubeconform"), "-strict", "-output", "json", "-verbose", "-schema-location", self.place, "-"],
                              input=manifests, capture_output=True, text=True, timeout=120, check=False)
        resources = json.loads(done.stdout)["resources"]
        assert resources, f"nothing was read: {done.stderr}"
        found = [f"{each.get('kind')}/{each.get('name')}: {each['msg']}" for each in resources if each["status"] != "statusValid"]
        assert bool(found) == bool(done.returncode), done.stdout
        return found
