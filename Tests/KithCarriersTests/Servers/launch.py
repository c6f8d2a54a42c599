"""Runs one storage server for the tests, on free ports of loopback.

    launch.py KIND DIRECTORY VENV

Prints {"NAME": PORT, ...} when all ports accept connections, or {"missing": PACKAGE}. The command
`kill` on standard input ends the server at once; the end of standard input ends it too, so it never
outlives its test.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

START_SECONDS = 30
END_SECONDS = 3
here = os.path.dirname(os.path.abspath(__file__))


class Missing(Exception):
    """A program that cannot be found; its argument names the package."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(name, package):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if path is None:
        raise Missing(package)
    return path


def in_venv(venv, name):
    path = os.path.join(venv, "bin", name)
    if not os.path.exists(path):
        raise Missing(f"{name} (PyPI)")
    return path


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def certificate(directory, name, host, days=2):
    """A certificate of the tests' own authority, whose own is `ca.pem`."""
    path = lambda suffix: os.path.join(directory, name + suffix)
    openssl = program("openssl", "openssl")
    run = lambda *arguments: subprocess.run(
        [openssl, *arguments], check=True, stderr=subprocess.DEVNULL, cwd=directory)
    if not os.path.exists(os.path.join(directory, "ca.pem")):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=tests",
            "-addext", "basicConstraints=critical,CA:TRUE")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", path(".key"), "-out", path(".csr"), "-subj", f"/CN={host}")
    write(path(".ext"), f"subjectAltName=DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else ""))
    run("x509", "-req", "-in", path(".csr"), "-CA", "ca.pem", "-CAkey", "ca.key", "-days", str(days),
        "-CAcreateserial", "-extfile", path(".ext"), "-out", path(".pem"))


def apache(directory, _):
    httpd = program("apache2", "apache2-bin")
    password = program("htpasswd", "apache2-utils")
    plain, secure = free_port(), free_port()
    certificate(directory, "server", "localhost")
    subprocess.run([password, "-cb", f"{directory}/basic", "kith", "open sesame"], check=True,
                   stderr=subprocess.DEVNULL)
    import hashlib
    digest = hashlib.md5(b"kith:carriers:open sesame").hexdigest()
    write(f"{directory}/digest", f"kith:carriers:{digest}\n")
    modules = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic",
               "auth_digest", "dav", "dav_fs", "alias", "ssl", "socache_shmcb", "setenvif", "dir"]
    loads = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
                      for name in modules if os.path.exists(f"/usr/lib/apache2/modules/mod_{name}.so"))
    places = ""
    for way in ["open", "basic", "digest"]:
        os.makedirs(f"{directory}/data/{way}")
        places += f"Alias /{way} {directory}/data/{way}\n<Location /{way}>\nDav On\n"
        if way != "open":
            places += (f"AuthType {way}\nAuthName carriers\nAuthUserFile {directory}/{way}\n"
                       "Require valid-user\n")
        else:
            places += "Require all granted\n"
        places += "</Location>\n"
    user = ""
    if os.getuid() == 0:
        user = "User www-data\nGroup www-data\n"
        subprocess.run(["chown", "-R", "www-data:www-data", directory], check=True)
    configuration = write(f"{directory}/apache.conf", f"""{loads}
ServerRoot {directory}
ServerName localhost
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
ErrorLog {directory}/error.log
DAVLockDB {directory}/locks
Mutex fcntl
{user}StartServers 1
ThreadsPerChild 16
Listen 127.0.0.1:{plain}
Listen 127.0.0.1:{secure}
{places}
<VirtualHost *:{secure}>
SSLEngine on
SSLCertificateFile {directory}/server.pem
SSLCertificateKeyFile {directory}/server.key
</VirtualHost>
""")
    return [httpd, "-f", configuration, "-D", "FOREGROUND"], {"plain": plain, "secure": secure}


def nginx(directory, _):
    binary = program("nginx", "nginx-light")
    module = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
    if not os.path.exists(module):
        raise Missing("libnginx-mod-http-dav-ext")
    port = free_port()
    os.makedirs(f"{directory}/data/dav")
    user = ""
    if os.getuid() == 0:
        user = "user www-data;"
        subprocess.run(["chown", "-R", "www-data:www-data", directory], check=True)
    configuration = write(f"{directory}/nginx.conf", f"""load_module {module};
{user}
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  client_max_body_size 16m;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      root {directory}/data;
      dav_methods PUT DELETE MKCOL;
      dav_ext_methods PROPFIND OPTIONS;
      dav_access user:rw group:rw all:r;
    }}
  }}
}}
""")
    return [binary, "-c", configuration, "-e", f"{directory}/error.log"], {"plain": port}


def rclone(directory, _):
    port = free_port()
    os.makedirs(f"{directory}/data")
    return [program("rclone", "rclone"), "serve", "webdav", "--addr", f"127.0.0.1:{port}",
            "--config", "", "--user", "kith", "--pass", "open sesame", "--dir-cache-time", "0s",
            "--poll-interval", "0", f"{directory}/data"], {"plain": port}


def wsgidav(directory, venv):
    port = free_port()
    os.makedirs(f"{directory}/data")
    configuration = write(f"{directory}/wsgidav.json", json.dumps({
        "host": "127.0.0.1", "port": port, "provider_mapping": {"/": f"{directory}/data"},
        "http_authenticator": {"accept_basic": False, "accept_digest": True,
                               "default_to_digest": True},
        "simple_dc": {"user_mapping": {"*": {"kith": {"password": "open sesame"}}}},
        "logging": {"enable_loggers": []}, "verbose": 1}))
    return [in_venv(venv, "wsgidav"), "-c", configuration], {"plain": port}


def moto(directory, venv):
    port = free_port()
    return [in_venv(venv, "moto_server"), "-H", "127.0.0.1", "-p", str(port)], {"plain": port}


def nanio(directory, venv):
    port = free_port()
    os.makedirs(f"{directory}/data/kith-tests")
    os.environ |= {"NANIO_ACCESS_KEY": "AKIAKITH", "NANIO_SECRET_KEY": "open/sesame+key"}
    return [in_venv(venv, "nanio"), "serve", "--host", "127.0.0.1", "--port", str(port),
            "--data-dir", f"{directory}/data", "--no-access-log"], {"plain": port}


def faults(directory, _):
    ports = {name: free_port() for name in ["plain", "good", "expired", "elsewhere"]}
    certificate(directory, "good", "localhost")
    certificate(directory, "expired", "localhost", days=-1)
    certificate(directory, "elsewhere", "example.org")
    # A directory of authorities, whose files are found by their hashes.
    os.makedirs(f"{directory}/trusted")
    shutil.copy(f"{directory}/ca.pem", f"{directory}/trusted")
    subprocess.run([program("openssl", "openssl"), "rehash", f"{directory}/trusted"], check=True)
    return [sys.executable, f"{here}/faults.py", directory, json.dumps(ports)], ports


def started(process, ports):
    end = time.monotonic() + START_SECONDS
    for port in ports.values():
        while process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
    return process.poll() is None and time.monotonic() < end


def end(process, gently=False):
    """Ends the server with its own processes. Gently, it collects these itself."""
    if gently:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def main():
    kind, directory, venv = sys.argv[1:4]
    log = open(f"{directory}.log", "ab")
    for attempt in range(3):
        folder = f"{directory}/{attempt}"
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        try:
            command, ports = globals()[kind](folder, venv)
        except Missing as missing:
            return print(json.dumps({"missing": str(missing)}), flush=True)
        # In a group of its own, so that the server's own processes end with it.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True)
        if started(process, ports):
            break
        # Another program has taken the port meanwhile.
        end(process)
    else:
        return print(json.dumps({"failed": f"{kind} did not start; see {directory}.log"}), flush=True)
    print(json.dumps({"ports": ports, "folder": folder, "process": process.pid}), flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            end(process)
            print(json.dumps({"killed": True}), flush=True)
    # These have processes of their own, which they collect.
    end(process, gently=kind in ["apache", "nginx"])


main()
