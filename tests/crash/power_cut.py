"""Cuts the power of an ext4 file system: for each line on standard input, shuts the file system of the folder
down without writing out its journal, and answers with a line."""
import fcntl
import os
import struct
import sys

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2

print("ready", flush=True)
for line in sys.stdin:
    folder = os.open(line.rstrip("\n"), os.O_RDONLY)
    try:
        fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        print("cut", flush=True)
    except OSError as error:
        print(f"failed: {error}", flush=True)
    finally:
        os.close(folder)
