"""Holds the packets of a netfilter queue back for a while: DELAY +- JITTER milliseconds each, so that they also
overtake each other. `tc netem` is not in every kernel.

    delay.py QUEUE DELAY JITTER
"""
import heapq
import random
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER = 12
QUEUE_SUBSYSTEM = 3
PACKET, VERDICT, CONFIG = 0, 1, 2
ATTR_PACKET_HEADER, ATTR_VERDICT = 1, 2
CONFIG_COMMAND, CONFIG_PARAMS, CONFIG_LENGTH = 1, 2, 3
COMMAND_BIND = 1
COPY_META = 1
ACCEPT = 1

queue, delay, jitter = int(sys.argv[1]), float(sys.argv[2]) / 1000, float(sys.argv[3]) / 1000


def attribute(kind, payload):
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def message(kind, attributes):
    body = struct.pack("=BB", 0, 0) + struct.pack("!H", queue) + attributes
    head = struct.pack("=IHHII", 16 + len(body), QUEUE_SUBSYSTEM << 8 | kind, 1, 0, 0)
    return head + body


def packets(data):
    """The numbers of the packets in what the kernel sent."""
    at = 0
    while at + 20 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind == (QUEUE_SUBSYSTEM << 8 | PACKET):
            place = at + 20
            while place + 4 <= at + length:
                size, name = struct.unpack_from("=HH", data, place)
                if name & 0x7FFF == ATTR_PACKET_HEADER:
                    yield struct.unpack_from("!I", data, place + 4)[0]
                if size < 4:
                    break
                place += size + 3 & ~3
        at += max(length + 3 & ~3, 16)


line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
line.bind((0, 0))
line.send(message(CONFIG, attribute(CONFIG_COMMAND, struct.pack("!BBH", COMMAND_BIND, 0, 2))))
line.send(message(CONFIG, attribute(CONFIG_PARAMS, struct.pack("!IB", 64, COPY_META))))
line.send(message(CONFIG, attribute(CONFIG_LENGTH, struct.pack("!I", 20000))))
print("ready", flush=True)

held = []
while True:
    wait = max(0.0, held[0][0] - time.monotonic()) if held else None
    if select.select([line], [], [], wait)[0]:
        try:
            data = line.recv(1 << 18)
        except OSError:
            continue  # too many at once: those are lost
        due = time.monotonic() + delay
        for number in packets(data):
            heapq.heappush(held, (due + random.uniform(-jitter, jitter), number))
    now = time.monotonic()
    while held and held[0][0] <= now:
        number = heapq.heappop(held)[1]
        line.send(message(VERDICT, attribute(ATTR_VERDICT, struct.pack("!II", ACCEPT, number))))
