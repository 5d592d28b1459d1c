"""`augury pack`: a stream, what it runs on and how it is submitted, as one archive.

fire.tar.gz
  submit.sh             the lines of spark-submit, by the kind of cluster
  main.py               runs `augury stream` with the options that were given
  files/                the program, with its facts, functions and graphs
  files.zip             the same, for the machines of a cluster
  environment.tar.gz    a virtual environment with Augury and what it needs
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import augury
from augury.cli.options import compiled as compiled_program
from augury.cli.options import fact_sources
from augury.core.errors import RunError
from augury.sources import SourceFile

_LEFT_OUT = ("pyspark", "py4j")  # a cluster has its own, which must fit its Java side
_NEEDED = ("augury", "pandas", "protobuf")
_OF_SUBMIT = ("master", "conf")
_SKIPPED = ("__pycache__", "tests")
_MAIN = '''"""Written by `augury pack`: runs the stream on whatever cluster it was submitted to."""

import sys

from pyspark import SparkConf, SparkContext

from augury.cli import main

SparkContext._ensure_initialized()
sys.argv = ["augury", "stream", *{argv!r}, "--master", SparkConf().get("spark.master", "local[*]")]
main()
'''
_SCRIPT = """#!/usr/bin/env bash
# Written by `augury pack`. ./submit.sh MASTER, which is local[*], spark://HOST:7077, yarn or k8s://https://HOST:6443;
# options of spark-submit may follow.
set -euo pipefail
cd "$(dirname "$0")"
master=${{1:?say where: local[*], spark://HOST:7077, yarn or k8s://https://HOST:6443}}
shift
{unpack}case $master in
{cases}*) echo "not a master: $master" >&2; exit 2 ;;
esac
"""
_UNPACK = "[ -d environment ] || { mkdir environment && tar -xzf environment.tar.gz -C environment; }\n"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("archive", metavar="ARCHIVE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="FILE... [OPTIONS OF STREAM]")
@click.option(
    "--no-environment",
    "environment",
    flag_value=False,
    default=True,
    help="Leave out the packages: all machines have them, with Augury.",
)
@click.option("--with", "others", multiple=True, metavar="NAME", help="A package that your own functions import.")
def pack(archive: str, arguments: tuple[str, ...], environment: bool, others: tuple[str, ...]) -> None:
    """Pack a stream for a cluster: ARCHIVE.tar.gz with the program, its files, an environment and submit.sh.

    What follows ARCHIVE are the program and the options of `augury stream`. The state, and folders of events and answers,
    are on a file system that all machines see.
    """
    from augury.cli.stream import stream

    if not archive.endswith((".tar.gz", ".tgz")):
        raise RunError(f"{archive} is no archive", hint="name it first: augury pack fire.tar.gz fire.aug --from …")
    context = stream.make_context("augury stream", list(arguments))
    with context, TemporaryDirectory(prefix="augury-") as name:
        folder = Path(name)
        argv = _with_files(context, folder)
        (folder / "main.py").write_text(_MAIN.format(argv=argv), encoding="utf-8")
        _zip(folder / "files", folder / "files.zip")
        if environment:
            _write_environment(folder / "environment.tar.gz", others)
        conf = _settings(context.params)
        lines = submit_lines(environment, conf)
        (folder / "submit.sh").write_text(_script(environment, lines), encoding="utf-8")
        (folder / "submit.sh").chmod(0o755)
        plain = archive.removesuffix(".tgz").removesuffix(".tar.gz")
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            tar.add(folder, Path(plain).name)
    click.echo(
        f"{archive}: {os.path.getsize(archive) / 1e6:.1f} MB. Unpack it where spark-submit is, and in its folder:\n"
    )
    for kind, line in lines.items():
        click.echo(f"{kind}:\n  {line}\n")


def _settings(params: dict[str, Any]) -> tuple[str, ...]:
    """The settings of the cluster, with Kafka's package where an address needs it."""
    paths = [SourceFile.parse(text).path for text in params["events"]]
    conf: tuple[str, ...] = params["conf"]
    from augury.spark.stream_addresses import check_addresses, with_packages

    check_addresses(paths, params["output"])
    return with_packages(conf, (*paths, params["output"]))


# What is submitted


def _with_files(context: click.Context, folder: Path) -> list[str]:
    """The arguments of `augury stream`, with the files that they name copied to a folder."""
    params = context.params
    program = compiled_program(params["program"], params["facts"], params["functions"], params["policy"])
    named = [module.span.source.name for module in program.modules]
    root = Path(os.path.commonpath([Path(name).absolute().parent for name in (*params["program"], *named)]))
    target = folder / "files"

    def copied(text: str) -> str:
        path = Path(text).absolute()
        if not path.is_file():
            raise RunError(f"{text} is no file, and cannot be packed")
        inside = path.relative_to(root) if path.is_relative_to(root) else Path("others", path.name)
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        if (target / inside).exists() and (target / inside).read_bytes() != path.read_bytes():
            raise RunError(f"two files are called {path.name}", hint="rename one of them")
        shutil.copyfile(path, target / inside)
        return f"files/{inside}"

    for name in named:
        copied(name)
    renamed = {
        "program": tuple(map(copied, params["program"])),
        "functions": tuple(map(copied, params["functions"])),
        "facts": tuple(f"{name}={_packed_facts(path, copied)}" for name, path in fact_sources(params["facts"])),
        "rdf": tuple(map(copied, params["rdf"])),
        "rdf_plain": tuple(map(copied, params["rdf_plain"])),
    }
    return _arguments(context, {**params, **renamed})


def _packed_facts(path: str, copied: Any) -> str:
    if "://" in path or ":SELECT" in path.upper().replace(" ", ""):
        raise RunError(f"facts of {path} cannot be packed", hint="write them to a file first")
    return str(copied(path))


def _arguments(context: click.Context, params: dict[str, Any]) -> list[str]:
    """What was parsed, as arguments again; what has its default is left out."""
    result: list[str] = []
    for param in context.command.params:
        value = params.get(param.name or "")
        if isinstance(param, click.Argument):
            result += value or ()
        elif param.name in _OF_SUBMIT or value in (None, (), False) or value == param.get_default(context):
            continue
        elif getattr(param, "is_flag", False):
            result.append(param.opts[0])
        else:
            for each in value if param.multiple else (value,):
                result += [param.opts[0], str(each)]
    return result


def submit_lines(environment: bool, conf: Sequence[str]) -> dict[str, str]:
    """The line of spark-submit by the kind of cluster; `"$@"` and `$master` stand for what the script is given."""
    archives = ",".join([*(["environment.tar.gz#environment"] if environment else []), "files.zip#files"])
    settings = [f"--conf {shlex.quote(text)}" for text in conf]
    if environment:
        settings += ["--conf spark.pyspark.python=./environment/bin/python"]
    shared = f"--archives {archives}"
    driver = ["--conf spark.pyspark.driver.python=./environment/bin/python"] if environment else []
    image = "--conf spark.kubernetes.container.image=IMAGE --conf spark.kubernetes.file.upload.path=s3a://BUCKET/FOLDER"
    kinds = {
        "local": ["--master 'local[*]'", *settings, *driver],
        "standalone": ["--master spark://HOST:7077", shared, *settings, *driver],
        "yarn": ["--master yarn --deploy-mode cluster", shared, *settings],
        "kubernetes": ["--master k8s://https://HOST:6443 --deploy-mode cluster", image, shared, *settings],
    }
    return {kind: " ".join(["spark-submit", *parts, "main.py"]) for kind, parts in kinds.items()}


def _script(environment: bool, lines: dict[str, str]) -> str:
    patterns = {"local": "local*", "standalone": "spark://*", "yarn": "yarn", "kubernetes": "k8s://*"}
    cases: list[str] = []
    for kind, line in lines.items():
        called = re.sub(r"--master \S+", '--master "$master"', line)
        called = re.sub(r" --conf spark\.kubernetes\.(container\.image=IMAGE|file\.upload\.path=\S+)", "", called)
        cases.append(f'{patterns[kind]}) {called.removesuffix(" main.py")} "$@" main.py ;;\n')
    return _SCRIPT.format(unpack=_UNPACK if environment else "", cases="".join(cases))


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            file.write(path, path.relative_to(folder))


# The environment


def _write_environment(target: Path, others: Iterable[str]) -> None:
    """A virtual environment with Augury and what it needs; its interpreter is that of this machine, by its path."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Path("lib", python, "site-packages")
    base = os.path.realpath(sys.executable)
    with tarfile.open(target, "w:gz", compresslevel=1) as tar:
        config = f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n".encode()
        entry = tarfile.TarInfo("pyvenv.cfg")
        entry.size = len(config)
        tar.addfile(entry, io.BytesIO(config))
        for name in ("python", "python3", python):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, base
            tar.addfile(link)
        tar.add(Path(augury.__file__).parent, str(packages / "augury"), filter=_wanted)
        for path, inside in _files_of(others):
            tar.add(path, str(packages / inside), recursive=False)


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(entry.name).name in _SKIPPED else entry


def _files_of(others: Iterable[str]) -> Iterator[tuple[Path, Path]]:
    """The files of all packages that are needed, and where they go below site-packages."""
    for name in sorted(_distributions([*_NEEDED, *others])):
        for file in metadata.distribution(name).files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and not set(file.parts) & set(_SKIPPED) and path.is_file():
                if name == "augury" and file.parts[0] == "augury":
                    continue
                yield path, Path(*file.parts)


def _distributions(names: Iterable[str]) -> set[str]:
    """Packages with all that they need, extras left out."""
    result: set[str] = set()
    waiting, optional = list(names), set[str]()
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in result or name in _LEFT_OUT:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            if name in optional:
                continue
            raise RunError(f"the package {name} is not installed here", hint=f"pip install {name}") from None
        result.add(name)
        for text in needs:
            need, _, marker = text.partition(";")
            if "extra" not in marker:
                waiting.append(re.split(r"[^\w.-]", need.strip(), maxsplit=1)[0])
                if marker.strip():  # of another system, perhaps
                    optional.add(re.sub(r"[-_.]+", "-", waiting[-1]).lower())
    return result
