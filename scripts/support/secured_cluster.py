"""A cluster as it stands on a network: etcd asks for certificates and passwords of its clients, and the nodes listen on
all addresses, over TLS, and ask for passwords. Its files are outside of the data directories, which are empty at first."""

import os
import subprocess

from . import tools

RULES = "local all all trust\nhost all all samehost trust\nhostssl replication copy samehost scram-sha-256\n"


class Secured:
    """See `cluster.Open`. All that is secret is below `directory`."""

    scheme = "https"

    def __init__(self, directory):
        directory.mkdir(parents=True)
        self.directory = directory
        tools.need("openssl", "etcdctl")
        self._make("authority")
        # etcd's gateway shows the server's own certificate to the server.
        for name in ("etcd", "server"):
            self._make(name, "authority")
        # Where etcd has users it takes no request through its gateway whose certificate has a common name.
        self._make("node", "authority", subject="/O=nodes")
        self._make("stranger")
        self._write("etcd.pass", "node's password\n")
        self._write("copy.pass", "*:*:*:copy:copy's password\n")
        self._write("pg_hba.conf", RULES)

    def _write(self, name, text):
        file = self.directory / name
        file.write_text(text)
        file.chmod(0o600)

    def _make(self, name, authority=None, subject=None):
        signed = ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key"] if authority else []
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", subject or f"/CN={name}",
                      "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", *signed,
                      *(["-addext", "basicConstraints=critical,CA:FALSE"] if authority else []))
        (self.directory / f"{name}.key").chmod(0o600)

    def _openssl(self, *words):
        subprocess.run([tools.find("openssl"), *words], cwd=self.directory, check=True, capture_output=True)

    def file(self, name):
        return str(self.directory / name)

    @property
    def etcd_options(self):
        return ["--client-cert-auth", "--trusted-ca-file", self.file("authority.crt"), "--cert-file", self.file("etcd.crt"),
                "--key-file", self.file("etcd.key")]

    def certificate_options(self, name):
        """What a client of etcd shows."""
        return ["--etcd-cacert", self.file("authority.crt"), "--etcd-cert", self.file(f"{name}.crt"), "--etcd-key",
                self.file(f"{name}.key")]

    @property
    def etcd_client_options(self):
        return [*self.certificate_options("node"), "--etcd-user", "node", "--etcd-passfile", self.file("etcd.pass")]

    @property
    def node_options(self):
        return ["--follow-with", f"passfile={self.file('copy.pass')} sslrootcert={self.file('authority.crt')}"]

    @property
    def configuration(self):
        return (f'hba_file = "{self.file("pg_hba.conf")}"\nssl_cert_file = "{self.file("server.crt")}"\n'
                f'ssl_key_file = "{self.file("server.key")}"\n')

    def addresses(self, port, replication):
        return ["--listen", f"0.0.0.0:{port}", "--advertise",
                f"host=localhost port={replication} user=copy sslmode=verify-full channel_binding=require"]

    def have_etcd_ask_for_passwords(self, cluster):
        """Makes a user of etcd for the nodes, with the keys of this cluster alone."""
        for words in [
            "user add root:root", "user grant-role root root", "role add nodes",
            "role grant-permission nodes --prefix=true readwrite /clearway/test/", ["user", "add", "node:node's password"],
            "user grant-role node nodes", "auth enable",
        ]:
            self.etcdctl(cluster, *(words.split() if isinstance(words, str) else words))

    def etcdctl(self, cluster, *words):
        subprocess.run(
            [tools.find("etcdctl"), "--endpoints", cluster.endpoints(), "--cacert", self.file("authority.crt"),
             "--cert", self.file("node.crt"), "--key", self.file("node.key"), *words],
            check=True, capture_output=True, env={**os.environ, "ETCDCTL_API": "3"}, timeout=30,
        )
