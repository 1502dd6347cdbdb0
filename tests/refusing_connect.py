"""A real Spark Connect server that refuses as Databricks does: a proxy of its protocol is before it.

Connect's client itself raises for `_jvm`, `sparkContext` and RDDs. The proxy refuses more:

- settings: serverless compute takes a few alone, and an environment of executors, `extraJavaOptions`, `spark.jars` and
  `spark.files` are of the compute, not of a session (https://docs.databricks.com/aws/en/spark/conf,
  https://docs.databricks.com/aws/en/compute/serverless/limitations);
- triggers: serverless notebooks and jobs have `availableNow` alone
  (https://docs.databricks.com/aws/en/compute/serverless/limitations#streaming-limitations);
- `persist` and `cache` (https://docs.databricks.com/aws/en/compute/serverless/limitations#caching-limitations);
- files sent to Python's workers, which Databricks takes since runtime 16.4 on serverless compute
  (https://docs.databricks.com/aws/en/dev-tools/databricks-connect/python/limitations), other servers not always.

Standard access mode of Databricks is Connect as well; it takes settings of SQL, any trigger, and `persist`
(https://docs.databricks.com/aws/en/compute/access-mode-limitations). Its stateful operators in Python are of runtime
16.3, and RocksDB is the default store since 17.3 (https://docs.databricks.com/aws/en/stateful-applications).
The texts of the errors are those of https://docs.databricks.com/aws/en/error-messages/error-classes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from pyspark.sql.connect.proto import base_pb2

from tests.processes import free_port

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTABLE = frozenset(
    {
        "spark.databricks.execution.timeout", "spark.sql.ansi.enabled", "spark.sql.files.maxPartitionBytes",
        "spark.sql.legacy.timeParserPolicy", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions",
    }
)  # fmt: skip
"""The settings that serverless compute takes."""
OF_CLIENT = (
    "spark.sql.session.", "spark.sql.execution.", "spark.sql.pyspark.", "spark.sql.timestampType", "spark.connect.",
    "spark.sql.connect.", "spark.python.sql.",
)  # fmt: skip
"""The beginnings of the settings that Connect's own client reads."""
_TASKS = "spark.sql.shuffle.partitions"
_METHODS = "/spark.connect.SparkConnectService/"


@dataclass(frozen=True)
class Refusals:
    """What the proxy refuses: settings except `SETTABLE`, queries that do not end, files for workers."""

    settings: bool = True
    endless_queries: bool = True
    files: bool = False


SERVERLESS = Refusals()
STANDARD = Refusals(settings=False, endless_queries=False)
NO_FILES = Refusals(files=True)


class Refused(Exception):
    """An error of the proxy's, with its class and text as Databricks has them."""

    def __init__(self, error_class: str, text: str, state: str = "0A000") -> None:
        super().__init__(f"[{error_class}] {text} SQLSTATE: {state}")
        self.error_class, self.state = error_class, state

    def status(self) -> Any:
        """The error as Connect's client takes it."""
        info = error_details_pb2.ErrorInfo(
            reason="org.apache.spark.sql.AnalysisException",
            domain="org.apache.spark",
            metadata={
                "classes": json.dumps(["org.apache.spark.sql.AnalysisException"]),
                "errorClass": self.error_class,
                "sqlState": self.state,
            },
        )
        detail = any_pb2.Any()
        detail.Pack(info)
        return rpc_status.to_status(
            status_pb2.Status(code=grpc.StatusCode.INTERNAL.value[0], message=str(self), details=[detail])
        )


@dataclass
class Proxy(grpc.GenericRpcHandler):
    """Passes calls of Connect's to the server at `target`, except those that it refuses. `texts` are its refusals."""

    target: str
    refusals: Refusals
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = [("grpc.max_receive_message_length", 1 << 27)]
        self.channel = grpc.insecure_channel(self.target, options=options)

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        method = details.method.removeprefix(_METHODS)
        if method in ("ExecutePlan", "ReattachExecute"):
            return grpc.unary_stream_rpc_method_handler(self._stream(method))
        if method == "AddArtifacts":
            return grpc.stream_unary_rpc_method_handler(self._upload(method))
        return grpc.unary_unary_rpc_method_handler(self._call(method))

    def _call(self, method: str) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def call(request: bytes, context: grpc.ServicerContext) -> bytes:
            with self._errors(context):
                self._check(method, request)
                answer: bytes = self.channel.unary_unary(_METHODS + method)(request, metadata=_metadata(context))
                return _with_auto(answer) if method == "Config" and self.refusals.settings else answer
            raise AssertionError

        return call

    def _stream(self, method: str) -> Callable[[bytes, grpc.ServicerContext], Iterator[bytes]]:
        def stream(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
            with self._errors(context):
                self._check(method, request)
                answers = self.channel.unary_stream(_METHODS + method)(request, metadata=_metadata(context))
                context.add_callback(answers.cancel)
                yield from answers

        return stream

    def _upload(self, method: str) -> Callable[[Iterable[bytes], grpc.ServicerContext], bytes]:
        def upload(requests: Iterable[bytes], context: grpc.ServicerContext) -> bytes:
            with self._errors(context):
                parts = list(requests)
                for part in parts:
                    self._check(method, part)
                answer: bytes = self.channel.stream_unary(_METHODS + method)(iter(parts), metadata=_metadata(context))
                return answer
            raise AssertionError

        return upload

    @contextlib.contextmanager
    def _errors(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Gives the client the errors of the server, and refusals."""
        try:
            yield
        except Refused as error:
            self.texts.append(str(error))
            context.abort_with_status(error.status())
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata() or ())
            context.abort(error.code(), error.details() or "")

    def _check(self, method: str, request: bytes) -> None:
        """Raises `Refused`."""
        if method == "Config" and self.refusals.settings:
            _check_settings(base_pb2.ConfigRequest.FromString(request).operation)
        elif method == "ExecutePlan" and self.refusals.endless_queries:
            command = base_pb2.ExecutePlanRequest.FromString(request).plan.command
            if command.HasField("write_stream_operation_start"):
                trigger = command.write_stream_operation_start.WhichOneof("trigger")
                if trigger not in ("available_now", "once"):
                    raise Refused(
                        "INFINITE_STREAMING_TRIGGER_NOT_SUPPORTED",
                        "Trigger type ProcessingTime is not supported for this cluster type. "
                        "Use a different trigger type e.g. AvailableNow, Once.",
                    )
        elif method == "AnalyzePlan" and self.refusals.endless_queries:
            if base_pb2.AnalyzePlanRequest.FromString(request).HasField("persist"):
                raise Refused("NOT_SUPPORTED_WITH_SERVERLESS", "PERSIST TABLE is not supported on serverless compute.")
        elif method == "AddArtifacts" and self.refusals.files:
            upload = base_pb2.AddArtifactsRequest.FromString(request)
            names = [a.name for a in upload.batch.artifacts] + [upload.begin_chunk.name]
            if any(name and not name.startswith("cache/") for name in names):
                raise Refused("UNSUPPORTED_FEATURE", "Files for Python's workers are not taken.")


def _check_settings(operation: base_pb2.ConfigRequest.Operation) -> None:
    kind = operation.WhichOneof("op_type")
    request = getattr(operation, kind)
    if kind in ("set", "get_with_default"):
        names = [pair.key for pair in request.pairs]
    else:
        names = list(getattr(request, "keys", []))
    for name in names:
        can_read = kind != "set" and kind != "unset" and name.startswith(OF_CLIENT)
        if name not in SETTABLE and not can_read and kind != "is_modifiable":
            raise Refused("CONFIG_NOT_AVAILABLE", f"Configuration {name} is not available.", "42K0I")


def _with_auto(answer: bytes) -> bytes:
    """Settings with "auto" for Spark's own number of shuffle partitions, as Databricks has it."""
    response = base_pb2.ConfigResponse.FromString(answer)
    for pair in response.pairs:
        if (pair.key, pair.value) == (_TASKS, "200"):
            pair.value = "auto"
    return response.SerializeToString()


def _metadata(context: grpc.ServicerContext) -> list[tuple[str, str | bytes]]:
    return [(m.key, m.value) for m in context.invocation_metadata() if not m.key.startswith(("grpc-", "user-agent"))]


@contextlib.contextmanager
def refusing_proxy(address: str, refusals: Refusals) -> Iterator[tuple[str, Proxy]]:
    """The address of a proxy before a Connect server, and the proxy."""
    proxy = Proxy(address.removeprefix("sc://"), refusals)
    options = [("grpc.max_receive_message_length", 1 << 27)]
    server = grpc.server(ThreadPoolExecutor(32), handlers=[proxy], options=options)
    port = free_port()
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"sc://127.0.0.1:{port}", proxy
    finally:
        server.stop(1).wait()
        proxy.channel.close()
