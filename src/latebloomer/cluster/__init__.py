"""The connection to Ray: start it on this machine, or join a running cluster.

A Ray cluster runs any code that it is sent. A Ray that is started here listens only on the
loopback interface, requires a token, has its files where only this user can enter, and ends with
the program, however the program ends (`docs/security.md`). A running cluster is joined and left
running.
"""

from latebloomer.cluster.connection import Cluster

__all__ = ["Cluster"]
