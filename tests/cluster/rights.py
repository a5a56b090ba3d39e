"""The rights that the chart gives the operator, read from the manifest that is made of it, and somebody who has them all but one."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import cluster as clusters

INSTALL = Path(__file__).resolve().parents[2] / "deploy" / "install.yaml"
ACCOUNT = "ringmaster-operator"  # of the chart
END = r"\](?: +#.*)?\n"
RULE = re.compile(rf"- apiGroups: \[(.*){END} +resources: \[(.*){END} +verbs: \[(.*){END}")
WITHOUT_NAMESPACE = {"nodes"}


class Right(NamedTuple):
    group: str
    resource: str
    verb: str

    def __str__(self):
        return f"{self.verb} {self.resource}"

    def rule(self):
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}

    def lacking(self, who):
        """The API server's words to who lacks it."""
        return f'User "{who}" cannot {self.verb} resource "{self.resource}" in API group "{self.group}"'


def _words(text):
    return [word.strip().strip('"') for word in text.split(",")]


def _roles_of(text, account):
    """Names of the roles that this ServiceAccount is bound to."""
    found = set()
    for document in text.split("\n---\n"):
        if re.search(r"^kind: (Cluster)?RoleBinding$", document, re.M) and f"kind: ServiceAccount, name: {account}," in document:
            found.add(re.search(r"^roleRef: \{.*name: ([^ ,}]+)\}", document, re.M).group(1))
    return found


def of_the_chart(text=None, account=ACCOUNT):
    """Each right that any role gives the operator, in the manifest's order."""
    text = INSTALL.read_text(encoding="utf-8") if text is None else text
    roles, found = _roles_of(text, account), []
    for document in text.split("\n---\n"):
        name = re.search(r"^kind: (?:Cluster)?Role\nmetadata:\n  name: (\S+)", document, re.M)
        if not name or name.group(1) not in roles:
            continue
        roles.remove(name.group(1))
        rules = RULE.findall(document + "\n")
        assert len(rules) == len(re.findall(r"^ *- ", document, re.M)), f"a rule of {name.group(1)} that is not understood"
        found += [Right(group, resource, verb) for groups, resources, verbs in rules
                  for group in _words(groups) for resource in _words(resources) for verb in _words(verbs)]
    assert found and not roles, f"roles that are bound and not there: {roles}"
    return found


class Somebody:
    """A ServiceAccount in a namespace, with rights there (and to nodes, as nodes lie in none) that can be taken and given."""

    def __init__(self, kubectl, folder, rights):
        self.kubectl = kubectl
        self.name = f"system:serviceaccount:{kubectl.namespace}:operator"
        self.config = Path(folder) / "config"
        kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}, *self._roles(rights), *self._bindings())
        self.config.write_text(json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": clusters.SERVER, "certificate-authority": str(kubectl.cluster.pki / "ca.crt")}}],
            "users": [{"name": "u", "user": {"token": kubectl("create", "token", "operator").strip()}}]}), encoding="ascii")

    def may(self, rights):
        """These rights, from now on."""
        self.kubectl.apply(*self._roles(rights))

    def close(self):
        self.kubectl("delete", "clusterrole,clusterrolebinding", self._meta(True)["name"])

    def _meta(self, everywhere):
        return {"name": f"operator-{self.kubectl.namespace}"} if everywhere else {"name": "operator", "namespace": self.kubectl.namespace}

    def _roles(self, rights):
        return [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole" if everywhere else "Role", "metadata": self._meta(everywhere),
                 "rules": [right.rule() for right in rights if (right.resource in WITHOUT_NAMESPACE) == everywhere]} for everywhere in (False, True)]

    def _bindings(self):
        return [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding", "metadata": self._meta(everywhere),
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self._meta(everywhere)["name"]},
                 "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": self.kubectl.namespace}]}
                for kind, everywhere in (("Role", False), ("ClusterRole", True))]
