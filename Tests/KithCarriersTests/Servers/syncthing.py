"""Keeps two folders equal by Syncthing, from two network namespaces. Only root can make these.

    syncthing.py DIRECTORY PREFIX

Makes DIRECTORY/one and DIRECTORY/two and prints {"ready": true}. The command `cut` on standard input
takes the link down, `join` puts it up again; each is answered by a line. The end of standard input
ends all that it made.
"""

import json
import os
import signal
import subprocess
import sys

directory, prefix = sys.argv[1:3]
names = ["one", "two"]
addresses = {"one": "10.77.0.1", "two": "10.77.0.2"}
space = lambda name: f"{prefix}{name}"
ip = lambda *arguments: subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


def network():
    for name in names:
        ip("netns", "add", space(name))
    ip("link", "add", "veth", "netns", space("one"), "type", "veth", "peer", "name", "veth",
       "netns", space("two"))
    for name in names:
        ip("-n", space(name), "addr", "add", addresses[name] + "/24", "dev", "veth")
        ip("-n", space(name), "link", "set", "lo", "up")
        ip("-n", space(name), "link", "set", "veth", "up")


def configure():
    identities = {}
    for name in names:
        home = f"{directory}/home-{name}"
        os.makedirs(f"{directory}/{name}/.stfolder")
        run = lambda *more: subprocess.run(
            ["syncthing", *more, f"--home={home}"], check=True, capture_output=True, text=True).stdout
        run("generate", "--no-default-folder", "--skip-port-probing")
        identities[name] = run("--device-id").strip()
    for name in names:
        devices = "".join(f'<device id="{identities[other]}" name="{other}"><address>'
                          f"tcp://{addresses[other]}:22000</address></device>" for other in names)
        shares = "".join(f'<device id="{identities[other]}"/>' for other in names)
        with open(f"{directory}/home-{name}/config.xml", "w") as file:
            file.write(f"""<configuration version="35">
<folder id="kith" path="{directory}/{name}" type="sendreceive" rescanIntervalS="3600"
  fsWatcherEnabled="true" fsWatcherDelayS="1">{shares}</folder>
{devices}
<gui enabled="false"/>
<options><listenAddress>tcp://{addresses[name]}:22000</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><urAccepted>-1</urAccepted>
<crashReportingEnabled>false</crashReportingEnabled><startBrowser>false</startBrowser>
<reconnectionIntervalS>1</reconnectionIntervalS></options></configuration>""")


def main():
    processes = []
    try:
        network()
        configure()
        for name in names:
            log = open(f"{directory}/{name}.log", "ab")
            processes.append(subprocess.Popen(
                ["ip", "netns", "exec", space(name), "syncthing", "serve", "--no-browser",
                 "--no-restart", "--no-upgrade", f"--home={directory}/home-{name}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | {"STNOUPGRADE": "1", "STMONITORED": "1"}))
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            ip("-n", space("one"), "link", "set", "veth", "down" if line.strip() == "cut" else "up")
            print(json.dumps({"ready": True}), flush=True)
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for name in names:
            subprocess.run(["ip", "netns", "del", space(name)], check=False)


main()
