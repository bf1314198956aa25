"""The way to Ray: start one here, or join one that runs, and leave things as they were.

A Ray cluster runs any code that it is sent. One that is started here listens on the loopback
interface alone, asks for a token, keeps its files where only this user can enter, and ends with
the program, however that ends (`docs/security.md`); one that runs already is joined and
left running.
"""

from latebloomer.cluster.connection import Cluster

__all__ = ["Cluster"]
