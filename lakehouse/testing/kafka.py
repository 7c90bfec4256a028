"""A real broker of Apache Kafka on this machine, for tests of streams: one node, in KRaft mode, on a loopback port.

Its jars are fetched once, by the Ivy that Spark brings, into a folder of their own. The broker and its client are
processes of Java that end with the block, or with this process.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # type: ignore[import-untyped]

from lakehouse.testing.processes import dies_with_parent, free_port, wait_until_it_listens
from lakehouse.testing.store_programs import Unavailable, kept_folder, made_once

VERSION = "4.4.0"
_COORDINATES = ("org.apache.kafka", "kafka_2.13", VERSION)
_FETCH_SECONDS = 600
_MEMORY = ("-Xmx384m", "-Xms64m", "-XX:TieredStopAtLevel=1")
_SECONDS = 60


@dataclass(slots=True)
class Broker:
    """A running broker; ``servers`` is what clients call ``bootstrap.servers``."""

    servers: str
    _client: JavaGateway = field(repr=False)
    _producer: Any = field(default=None, repr=False)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic of the broker."""
        jvm = self._client.jvm
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(self._settings())
        try:
            topic = jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, _short(jvm, 1))
            topics = jvm.java.util.ArrayList()
            topics.add(topic)
            admin.createTopics(topics).all().get()
        finally:
            admin.close()

    def send(self, topic: str, records: Iterable[tuple[str, str]]) -> None:
        """Send records (key and value), and wait until the broker has all of them."""
        jvm = self._client.jvm
        if self._producer is None:
            settings = self._settings()
            for part in ("key", "value"):
                settings.put(f"{part}.serializer", "org.apache.kafka.common.serialization.StringSerializer")
            self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(settings)
        sent = [
            self._producer.send(jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, key, value))
            for key, value in records
        ]
        self._producer.flush()
        for one in sent:
            one.get()

    def _settings(self) -> Any:
        settings = self._client.jvm.java.util.Properties()
        settings.put("bootstrap.servers", self.servers)
        return settings


def _short(jvm: Any, value: int) -> Any:
    return jvm.java.lang.Short.valueOf(str(value))


@contextmanager
def kafka_server(folder: Path) -> Iterator[Broker]:
    """A broker over a folder. Raises `Unavailable` where there is no Java, or the jars cannot be had."""
    jars = f"{_jars()}/*"
    folder.mkdir(parents=True, exist_ok=True)
    port, controller = free_port(), free_port()
    settings = folder / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
        "controller.listener.names=CONTROLLER\n"
        f"log.dirs={folder / 'logs'}\n"
        "offsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\n"
        "transaction.state.log.min.isr=1\n"
        "group.initial.rebalance.delay.ms=0\n"
        "num.network.threads=1\n"
        "num.io.threads=2\n"
    )
    java = ["java", *_MEMORY, "-cp", jars]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "a", 1)
    command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    formatted = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
    )
    if formatted.returncode:
        raise RuntimeError(f"Kafka's storage was not formatted: {(formatted.stdout + formatted.stderr)[-2000:]}")
    with ExitStack() as stack:
        log = stack.enter_context((folder / "broker.log").open("wb"))
        process = subprocess.Popen(
            [*dies_with_parent(), *java, "kafka.Kafka", str(settings)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(_end, process)
        if not wait_until_it_listens(port, process):
            raise RuntimeError("Kafka did not start: " + (folder / "broker.log").read_text(errors="replace")[-2000:])
        client = _client(folder, jars)
        stack.callback(client.shutdown)
        yield Broker(f"127.0.0.1:{port}", client)


def _client(folder: Path, jars: str) -> JavaGateway:
    """A Java process with Kafka's own client, which Python calls."""
    pyspark = _pyspark()
    (py4j,) = (pyspark / "jars").glob("py4j-*.jar")
    with (folder / "client.log").open("wb") as log:
        port, token = launch_gateway(
            jarpath=str(py4j),
            classpath=jars,
            javaopts=["-Xmx128m"],
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            enable_auth=True,
        )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # what it keeps is a test's
    process.wait()


def _pyspark() -> Path:
    import pyspark  # noqa: PLC0415 - what it brings is looked for where it lies

    return Path(pyspark.__file__).parent


def _jars() -> Path:
    """The folder of Kafka's jars, fetched on first need (40 MB). Raises `Unavailable`."""
    folder = kept_folder(f"kafka-{VERSION}")
    if shutil.which("java") is None:
        raise Unavailable("Kafka needs Java: install openjdk-17-jre-headless")
    if not folder.exists():
        with made_once(folder, install=True) as making:
            (ivy,) = (_pyspark() / "jars").glob("ivy-*.jar")
            pattern = f"{making}/[artifact]-[revision](-[classifier]).[ext]"
            cache = ["-cache", str(making.parent / "cache")]
            command = ["java", "-jar", str(ivy), *cache, "-m2compatible", "-dependency", *_COORDINATES]
            try:
                done = subprocess.run(
                    [*command, "-retrieve", pattern],
                    check=False,
                    env=dict(os.environ),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_FETCH_SECONDS,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise Unavailable(f"Kafka's jars cannot be had: {type(error).__name__}") from error
            if done.returncode or not any(making.glob("kafka_2.13-*.jar")):
                raise Unavailable(f"Kafka's jars cannot be had: {':'.join(_COORDINATES)}")
    return folder
