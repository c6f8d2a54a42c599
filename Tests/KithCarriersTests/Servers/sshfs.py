"""Mounts a folder by sshfs whose server is a process of this computer, so that it can hang and end.

    sshfs.py DIRECTORY

Mounts DIRECTORY/mount and prints {"ready": true}. On standard input, `stop` and `go on` do that to the
server, and `kill` ends the file system's process; each is answered by a line. The end of standard input
ends all.
"""

import json
import os
import signal
import subprocess
import sys
import time

directory = sys.argv[1]
mount, data, identity = (f"{directory}/{name}" for name in ["mount", "data", "identity"])
MOUNT_SECONDS = 10


def main():
    os.makedirs(mount)
    os.makedirs(data)
    server = f"{directory}/server"
    with open(server, "w") as file:
        file.write(f"#!/bin/sh\necho $$ >{identity}\nexec /usr/lib/openssh/sftp-server\n")
    os.chmod(server, 0o755)
    process = subprocess.Popen(
        ["sshfs", f"localhost:{data}", mount, "-f", "-o", f"ssh_command={server}", "-o",
         "cache=no,dir_cache=no"], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + MOUNT_SECONDS
        while not os.path.ismount(mount) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if not os.path.ismount(mount):
            return print(json.dumps({"failed": "sshfs does not mount"}), flush=True)
        print(json.dumps({"ready": True}), flush=True)
        with open(identity) as file:
            number = int(file.read())
        for line in sys.stdin:
            match line.strip():
                case "stop": os.kill(number, signal.SIGSTOP)
                case "go on": os.kill(number, signal.SIGCONT)
                case "kill":
                    process.kill()
                    process.wait()
            print(json.dumps({"ready": True}), flush=True)
    finally:
        # Requests that hang fail when the file system's process ends.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        subprocess.run(["umount", "-l", mount], check=False, stderr=subprocess.DEVNULL)


main()
