"""Nodes of a cluster on one machine: each has its host name, network and process numbers, and all share the disk."""

import subprocess

import pytest

NODE = "unshare --user --map-root-user --net --uts --pid --mount-proc --kill-child sh -c".split()
SET_UP = 'ip link set lo up && hostname "$0" && exec "$@"'


def on_node(name: str, command: list[str], **options) -> subprocess.Popen:
    return subprocess.Popen([*NODE, SET_UP, name, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


@pytest.fixture
def nodes():
    """Skips a test where this machine has no namespaces to give."""
    try:
        tried = on_node("node", ["true"])
    except FileNotFoundError:
        pytest.skip("nodes need unshare, which only Linux has")
    if said := tried.communicate()[0]:
        pytest.skip(f"no namespaces for nodes: {said.strip()}")
