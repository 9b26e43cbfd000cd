"""Raises the loopback device: in a network namespace of its own it is down."""
import fcntl
import socket
import struct

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
