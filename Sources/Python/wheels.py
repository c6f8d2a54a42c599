#!/usr/bin/env python3
"""Makes the wheel, without any tool but Python: a build backend (PEP 517), and a program.

    Sources/Python/wheels.py --output DIR --library libkith.so.0 --licences FILE
                                                                    a wheel that has the library
    Sources/Python/wheels.py --tree DIR                             the files of a Debian package

Times are those of SOURCE_DATE_EPOCH, and names are sorted: the same files give the same bytes.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import sysconfig
import time
import zipfile

here = pathlib.Path(__file__).resolve().parent
LIBRARY = "libkith.so.0"


def version():
    named = here.parent / "KithCore" / "Software.swift"
    return re.search(r'static let version = "(.*)"', named.read_text())[1]


def metadata():
    return (
        f"Metadata-Version: 2.1\nName: kith\nVersion: {version()}\n"
        "Summary: A small key-value store on all of a person's devices, without a server\n"
        "License: MIT\nRequires-Python: >=3.9\n"
        "Classifier: Operating System :: POSIX :: Linux\nClassifier: Typing :: Typed\n").encode()


def tag(library):
    """The library is of this machine, and needs the libc of this machine or a newer one: so it is
    linux_x86_64, and not a manylinux."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_") if library else "any"
    return f"py3-none-{platform}"


def files(library, licences=None):
    """All by their path in the wheel, without RECORD."""
    contents = {
        f"kith/{path.name}": path.read_bytes()
        for path in (here / "kith").iterdir() if path.suffix == ".py" or path.name == "py.typed"}
    if library:
        contents[f"kith/{LIBRARY}"] = pathlib.Path(library).read_bytes()
    info = f"kith-{version()}.dist-info"
    contents[f"{info}/METADATA"] = metadata()
    contents[f"{info}/LICENSE"] = pathlib.Path(
        licences or here.parent.parent / "LICENSE").read_bytes()
    contents[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: kith\n"
        f"Root-Is-Purelib: {str(not library).lower()}\nTag: {tag(library)}\n").encode()
    return dict(sorted(contents.items())), info


def write_wheel(directory, library, licences=None):
    contents, info = files(library, licences)
    record = "".join(
        f"{path},sha256={digest(data)},{len(data)}\n" for path, data in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"kith-{version()}-{tag(library)}.whl"
    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w") as archive:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.endswith(LIBRARY) else 0o100644) << 16
            archive.writestr(entry, data)
    return name


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(directory, settings=None, metadata_directory=None):
    return write_wheel(directory, os.environ.get("KITH_LIBRARY"))


def build_sdist(directory, settings=None):
    raise NotImplementedError("the package is built from the repository: python3 -m build --wheel")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("--output", "--library", "--licences", "--tree"):
        parser.add_argument(name)
    options = parser.parse_args()
    if options.output:
        print(write_wheel(options.output, options.library, options.licences))
    if options.tree:
        for path, data in files(None)[0].items():
            # Debian keeps licences elsewhere, and its package manager the list of files.
            if path.endswith(("/LICENSE", "/WHEEL")):
                continue
            place = pathlib.Path(options.tree) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o644)
