"""Certificates and kubeconfigs of one test cluster, made with openssl. Keys never leave the cluster's run folder."""

import subprocess
from pathlib import Path

DAYS = "3650"

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: cluster, cluster: {{server: "{server}", certificate-authority: {pki}/ca.crt}}}}]
users: [{{name: user, user: {{client-certificate: {pki}/{name}.crt, client-key: {pki}/{name}.key}}}}]
contexts: [{{name: context, context: {{cluster: cluster, user: user}}}}]
current-context: context
"""


def openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")


class Authority:
    """A certificate authority and what it signed, in one folder: NAME.crt and NAME.key."""

    def __init__(self, folder, server):
        self.folder = Path(folder)
        self.server = server
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, name):
        return str(self.folder / name)

    def authority(self, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS,
                "-subj", f"/CN={name}", "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.crt"),
                "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")

    def sign(self, name, subject, usage, names="", by="ca"):
        """usage is clientAuth or serverAuth; names are subjectAltName's, "DNS:a,IP:b"."""
        extra = ["-addext", f"subjectAltName={names}"] if names else []
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS,
                "-CA", self.path(f"{by}.crt"), "-CAkey", self.path(f"{by}.key"),
                "-subj", subject, "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.crt"),
                "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature",
                "-addext", f"extendedKeyUsage={usage}", *extra)

    def token_keys(self, name):
        """What ServiceAccount tokens are signed with."""
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", self.path(f"{name}.key"))
        openssl("pkey", "-in", self.path(f"{name}.key"), "-pubout", "-out", self.path(f"{name}.pub"))

    def user(self, name, subject):
        """A client certificate and the kubeconfig that uses it; returns the kubeconfig's path."""
        self.sign(name, subject, "clientAuth")
        return self.kubeconfig(name)

    def kubeconfig(self, name):
        text = KUBECONFIG.format(server=self.server, pki=self.folder, name=name)
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(text)
        return str(path)
