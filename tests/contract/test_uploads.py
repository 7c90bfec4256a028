"""Large files are put in parts: noted before the first, whole or nothing, and aborted whatever becomes of a writer."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from botocore.config import Config
from botocore.session import Session
from sqlalchemy import text

import lakehouse
from lakehouse.errors import InvalidArgument, LockLost, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.exports import EXPORTS, delete_markers
from lakehouse.storage.opening import open_warehouse
from lakehouse.storage.work import delete_others
from lakehouse.testing import behind, store_programs
from lakehouse.testing.object_stores import SERVERS, Store, Unavailable
from lakehouse.testing.processes import dies_with_parent
from lakehouse.testing.store_faults import PASSING, Fault, Rule, Schedule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind
from lakehouse.testing.store_trial import StoreTrial

pytestmark = pytest.mark.xdist_group("uploads")
PART_BYTES = 5 << 20
"""The least that S3 takes; the files of these tests have one such part and a smaller one."""
SIZE = PART_BYTES + 1000
DAY_US = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
UPLOADING = (Kind.CREATE_UPLOAD, Kind.PUT_PART, Kind.COMPLETE_UPLOAD, Kind.ABORT_UPLOAD)
_FAULTS = 20


def is_here() -> bool:
    """Whether versitygw is installed: `python -m lakehouse.testing.store_programs` does so, or says why it cannot."""
    try:
        store_programs.versitygw(install=False)
    except Unavailable:
        return False
    return True


@pytest.fixture(scope="module", params=["moto", *(["versitygw"] if is_here() else [])])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture
def proxy(server: Store) -> Iterator[StoreProxy]:
    with StoreProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def place(server: Store, proxy: StoreProxy, tmp_path: Path) -> Store:
    return server.under(tmp_path.name).through(proxy.port)


@pytest.fixture
def connect(place: Store, tmp_path: Path) -> Iterator[Callable[..., lakehouse.Lake]]:
    """Open the lake as a process of a machine does; files of more than a part are large."""
    opened: list[lakehouse.Lake] = []

    def one_more(machine: str = "one", **settings: Any) -> lakehouse.Lake:
        own = settings.pop("options", {})
        opened.append(lakehouse.connect(**kept(place, tmp_path, machine, **own), **settings))
        return opened[-1]

    yield one_more
    for one in opened:
        one.close()


def kept(place: Store, tmp_path: Path, machine: str, **own: Any) -> dict[str, Any]:
    """What `connect` takes for the test's lake."""
    return {
        "catalog": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": place.url,
        "storage_options": {**place.options, "multipart_bytes": PART_BYTES, **own},
        "cache_dir": tmp_path / machine,
    }


@pytest.fixture
def lake(connect: Callable[..., lakehouse.Lake]) -> lakehouse.Lake:
    return connect()


@pytest.fixture
def open_uploads(server: Store, tmp_path: Path) -> Callable[[], list[str]]:
    """The uploads that the store has below the test's prefix. Nothing but a test asks for them."""
    client = Session().create_client(
        "s3",
        endpoint_url=server.options["aws_endpoint"],
        region_name=server.options["aws_region"],
        aws_access_key_id=server.options["aws_access_key_id"],
        aws_secret_access_key=server.options["aws_secret_access_key"],
        config=Config(s3={"addressing_style": "path"}),
    )

    def listed() -> list[str]:
        found = client.list_multipart_uploads(Bucket=server.bucket).get("Uploads", [])
        return [one["UploadId"] for one in found if one["Key"].startswith(f"warehouse/{tmp_path.name}/")]

    return listed


def rows(first: int = 0, count: int = 450_000) -> pa.Table:
    """Rows of one day, whose file has two parts."""
    ids = np.arange(first, first + count)
    noise = np.random.default_rng(first).integers(0, 1 << 62, count)
    columns = {"at": pa.array(ids + DAY_US, pa.timestamp("us", "UTC")), "id": ids, "noise": noise, "more": noise[::-1]}
    return pa.table(columns)


def created(lake: lakehouse.Lake) -> lakehouse.Table:
    return lake.create_table("events", "at TIMESTAMP, id BIGINT, noise BIGINT, more BIGINT", time="at")


def noted(lake: lakehouse.Lake) -> list[tuple[str, str]]:
    """The uploads that the catalog knows."""
    return [tuple(row) for row in behind.rows_of(lake.catalog, text("SELECT path, id FROM upload"))]


def large(tmp_path: Path, name: str = "large", seed: int = 7) -> Path:
    file = tmp_path / name
    file.write_bytes(np.random.default_rng(seed).bytes(SIZE))
    return file


def content(objects: Any, stored: str, tmp_path: Path, size: int = SIZE) -> bytes:
    objects.get(stored, tmp_path / "got", size)
    return (tmp_path / "got").read_bytes()


class Notes:
    """Notes of uploads, each with how many parts had been put at that moment."""

    def __init__(self, proxy: StoreProxy) -> None:
        self.proxy = proxy
        self.began_at: list[int] = []
        self.ended_at: list[int] = []

    def began(self, stored: str, upload: str) -> None:
        self.began_at.append(self.proxy.counts()[Kind.PUT_PART])

    def ended(self, stored: str, upload: str) -> None:
        self.ended_at.append(self.proxy.counts()[Kind.PUT_PART])


def test_a_large_file_is_put_in_parts_and_a_small_one_by_one_request(lake, connect, proxy, open_uploads):
    table = created(lake)
    proxy.forget()
    table.append(rows())
    counts = proxy.counts()
    assert counts == {Kind.CREATE_UPLOAD: 1, Kind.PUT_PART: 2, Kind.COMPLETE_UPLOAD: 1}
    proxy.forget()
    table.append(rows(1_000_000, 10))
    assert proxy.counts() == {Kind.PUT: 1}
    assert (noted(lake), open_uploads()) == ([], [])
    there = connect("two").table("events")
    assert there.scan().to_arrow().sort_by("id").columns == pa.concat_tables([rows(), rows(1_000_000, 10)]).columns
    assert lake.check(deep=True).findings == []


def test_the_size_up_to_which_one_request_is_made_is_exact(lake, proxy, tmp_path):
    objects, notes = lake.session.warehouse.objects, Notes(proxy)
    for size, wanted in ((PART_BYTES, {Kind.PUT: 1}), (PART_BYTES + 1, dict.fromkeys(UPLOADING[:3], 1))):
        file = tmp_path / str(size)
        file.write_bytes(bytes(size))
        proxy.forget()
        objects.put(f"t/{size}", file, notes)
        counts = proxy.counts()
        assert counts.keys() == wanted.keys()
        assert counts[Kind.PUT_PART] == (2 if Kind.PUT_PART in wanted else 0)


def test_each_part_and_the_whole_have_a_checksum_that_the_store_compares(server, lake, proxy, tmp_path):
    objects = lake.session.warehouse.objects
    objects.put("t/a", large(tmp_path), Notes(proxy))
    sums = [
        one.request.headers.get("x-amz-checksum-crc32") for one in proxy.exchanges if one.request.kind == "put_part"
    ]
    assert len(set(sums)) == 2
    assert None not in sums
    (end,) = (one.request for one in proxy.exchanges if one.request.kind is Kind.COMPLETE_UPLOAD)
    assert end.headers["if-none-match"] == "*"


def test_an_upload_is_noted_before_its_first_part_and_until_its_last(lake, proxy, tmp_path):
    notes = Notes(proxy)
    lake.session.warehouse.objects.put("t/a", large(tmp_path), notes)
    assert (notes.began_at, notes.ended_at) == ([0], [2])


def test_no_part_is_put_where_the_note_fails(lake, proxy, tmp_path, open_uploads):
    class Failing(Notes):
        def began(self, stored: str, upload: str) -> None:
            raise LockLost("the operation was ended")

    with pytest.raises(LockLost):
        lake.session.warehouse.objects.put("t/a", large(tmp_path), Failing(proxy))
    assert proxy.counts()[Kind.PUT_PART] == 0
    assert open_uploads() == []


@pytest.mark.parametrize("fault", [*PASSING[:4], Fault.LOST])
@pytest.mark.parametrize("kind", [Kind.PUT_PART, Kind.COMPLETE_UPLOAD])
def test_a_request_that_fails_is_made_again(lake, proxy, tmp_path, open_uploads, kind, fault):
    objects, file = lake.session.warehouse.objects, large(tmp_path)
    with proxy.following(Rule(fault, kinds=[kind], times=2)):
        objects.put("t/a", file, Notes(proxy))
    assert proxy.faults() == {fault: 2}
    assert content(objects, "t/a", tmp_path) == file.read_bytes()
    assert open_uploads() == []


def test_files_are_whole_after_many_faults(lake, proxy, tmp_path, open_uploads):
    objects, file = lake.session.warehouse.objects, large(tmp_path)
    kinds = tuple(set(Kind) - {Kind.CREATE_UPLOAD})  # the answer that has the id, if lost, is of an empty upload
    number = 0
    while sum(proxy.faults().values()) < _FAULTS:
        proxy.schedule = Schedule(number, 0.4, kinds=kinds)
        objects.put(f"t/{number}", file, Notes(proxy))
        assert content(objects, f"t/{number}", tmp_path) == file.read_bytes()
        number += 1
    proxy.clear()
    assert open_uploads() == []


def test_a_lost_answer_is_no_second_object_and_another_object_is_refused(lake, proxy, tmp_path, open_uploads):
    objects, file, other = lake.session.warehouse.objects, large(tmp_path), large(tmp_path, "other", seed=8)
    with proxy.following(Rule(Fault.LOST, kinds=[Kind.COMPLETE_UPLOAD])):
        objects.put("t/a", file, Notes(proxy))
    objects.put("t/a", file, Notes(proxy))  # the same bytes by another upload
    with pytest.raises(SegmentUnreadable, match="another object has the name"):
        objects.put("t/a", other, Notes(proxy))
    assert content(objects, "t/a", tmp_path) == file.read_bytes()
    assert open_uploads() == []


@pytest.mark.parametrize("checksum", ["SHA256", "CRC64NVME"])
def test_the_checksum_that_is_asked_for_is_sent(connect, proxy, tmp_path, checksum):
    lake = connect("two", options={"checksum_algorithm": checksum})
    lake.session.warehouse.objects.put("t/a", large(tmp_path), Notes(proxy))
    sent = "x-amz-checksum-sha256" if checksum == "SHA256" else "x-amz-checksum-crc32"
    assert all(sent in one.request.headers for one in proxy.exchanges if one.request.kind is Kind.PUT_PART)
    with proxy.following(Rule(Fault.LOST, kinds=[Kind.COMPLETE_UPLOAD])):
        lake.session.warehouse.objects.put("t/b", large(tmp_path), Notes(proxy))


def test_credentials_that_expire_in_the_middle_are_renewed(server, place, proxy, tmp_path, open_uploads):
    if server.server != "moto":
        return  # versitygw knows one key, and no token
    given = []

    def provider() -> dict[str, Any]:
        given.append(None)
        return {"access_key_id": "key", "secret_access_key": "Xs3cret", "token": f"token-{len(given)}"}

    plain = {name: value for name, value in place.options.items() if "key" not in name}
    options = {**plain, "multipart_bytes": PART_BYTES, "credential_provider": provider}
    objects = open_warehouse(place.url, options, tmp_path / "two").objects
    ended = Rule(Fault.EXPIRED, kinds=[Kind.PUT_PART], header="x-amz-security-token: token-1$", first=2, times=None)
    file = large(tmp_path)
    with proxy.following(ended):
        objects.put("t/a", file, Notes(proxy))
    assert proxy.faults()[Fault.EXPIRED] > 0
    assert content(objects, "t/a", tmp_path) == file.read_bytes()
    expired = proxy.following(Rule(Fault.EXPIRED, kinds=[Kind.PUT_PART], times=None))
    with expired, pytest.raises(StorageUnavailable, match="credentials have expired") as found:
        objects.put("t/b", file, Notes(proxy))
    assert "Xs3cret" not in f"{found.value} {found.value.facts} {found.value.__cause__!r}"
    assert open_uploads() == []


def test_a_refusal_is_named_and_leaves_nothing(lake, proxy, open_uploads):
    table = created(lake)
    for kind in (Kind.CREATE_UPLOAD, Kind.PUT_PART, Kind.COMPLETE_UPLOAD):
        refused = proxy.following(Rule(Fault.FORBIDDEN, kinds=[kind], times=None))
        with refused, pytest.raises(StorageUnavailable, match="do not allow it"):
            table.append(rows())
        assert (noted(lake), open_uploads(), table.count()) == ([], [], 0)
    assert lake.operations() == []


def test_an_upload_that_cannot_be_aborted_is_aborted_by_a_collection(lake, proxy, open_uploads):
    table = created(lake)
    refused = [Rule(Fault.FORBIDDEN, kinds=[kind], times=None) for kind in (Kind.COMPLETE_UPLOAD, Kind.ABORT_UPLOAD)]
    with proxy.following(*refused), pytest.raises(StorageUnavailable):
        table.append(rows())
    assert [one for _, one in noted(lake)] == open_uploads() != []
    with proxy.following(refused[1]), pytest.raises(StorageUnavailable, match="do not allow it"):
        lake.collect(grace_seconds=0)
    assert [one for _, one in noted(lake)] == open_uploads() != []  # what failed is done again
    lake.collect(grace_seconds=0)
    assert (noted(lake), open_uploads()) == ([], [])


CHILD = """
import pickle, sys
import lakehouse
sys.path.insert(0, {root!r})
from tests.contract.test_uploads import rows
settings = pickle.loads(bytes.fromhex(sys.argv[1]))
with lakehouse.connect(**settings, lease_seconds=0.5) as lake:
    {what}
"""


@pytest.fixture
def killed(place: Store, proxy: StoreProxy, tmp_path: Path) -> Callable[[str, Rule], None]:
    """Run a process which is killed once a request meets a rule, by which it is never answered."""

    def run(what: str, rule: Rule) -> None:
        settings = pickle.dumps(kept(place, tmp_path, "killed")).hex()
        root = str(Path(__file__).parents[2])
        with proxy.following(rule):
            program = CHILD.format(root=root, what=what)
            process = subprocess.Popen([*dies_with_parent(), sys.executable, "-c", program, settings], cwd=root)
            until = time.monotonic() + 60
            while Fault.HANG not in proxy.faults():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()

    return run


@pytest.mark.parametrize(
    ("kind", "first", "left"), [(Kind.CREATE_UPLOAD, 1, 0), (Kind.PUT_PART, 2, 1), (Kind.COMPLETE_UPLOAD, 1, 1)]
)
def test_what_a_killed_process_has_put_is_never_seen_and_a_collection_aborts_it(
    lake, proxy, killed, open_uploads, kind, first, left
):
    table = created(lake)
    killed("lake.table('events').append(rows())", Rule(Fault.HANG, kinds=[kind], first=first, times=None))
    assert len(open_uploads()) == len(noted(lake)) == left
    assert list(lake.session.warehouse.listed(table.spec.folder)) == []
    proxy.forget()
    until = time.monotonic() + 60
    while not lake.collect(grace_seconds=0).operations:  # before the dead one's lease has expired
        assert time.monotonic() < until
    assert (noted(lake), open_uploads(), table.count()) == ([], [], 0)
    assert not [one for one in proxy.exchanges if one.request.query.keys() & {"uploads"}]
    assert lake.check(deep=True).findings == []


PUBLISHES = """
    import numpy
    alone = pickle.loads(pickle.dumps(lake.session.warehouse))  # as a task of Spark's gets it
    path = alone.root / {stored!r}
    path.parent.mkdir(parents=True)
    path.write_bytes(numpy.random.default_rng(1).bytes({size}))
    alone.publish([path])
"""


def test_one_that_cannot_ask_the_catalog_notes_its_upload_beside_the_object(lake, proxy, tmp_path, open_uploads):
    folder = f"{created(lake).spec.folder}/{'0' * 32}"
    alone = pickle.loads(pickle.dumps(lake.session.warehouse))
    (alone.root / folder).mkdir(parents=True)
    alone.publish([large(alone.root / folder, "0.parquet")])
    kinds = [one.request.kind for one in proxy.exchanges]
    assert kinds.index(Kind.CREATE_UPLOAD) < kinds.index(Kind.PUT) < kinds.index(Kind.PUT_PART)
    assert [one.path for one in alone.listed(folder)] == [f"{folder}/0.parquet"]
    assert (noted(lake), open_uploads()) == ([], [])


@pytest.mark.parametrize(
    ("kind", "ends"), [(Kind.PUT_PART, "attempt"), (Kind.COMPLETE_UPLOAD, "operation"), (Kind.PUT_PART, "operation")]
)
def test_a_task_that_is_killed_leaves_no_upload_once_its_attempt_or_operation_is_over(
    lake, proxy, killed, open_uploads, kind, ends
):
    op = created(lake).begin_append()
    folder = f"{op.begun.table.folder}/{op.id}"
    killed(PUBLISHES.format(stored=f"{folder}/00000/0.parquet", size=SIZE), Rule(Fault.HANG, kinds=[kind], times=None))
    warehouse = lake.session.warehouse
    assert [one.path for one in warehouse.listed(folder)] == [f"{folder}/00000/0.parquet.upload"]
    assert len(open_uploads()) == 1
    if ends == "attempt":
        delete_others(warehouse, f"{folder}/00000", set(), is_repeated=True)
    else:
        op.abort()
        lake.collect(grace_seconds=0)
    assert list(warehouse.listed(folder)) == []
    assert open_uploads() == []


def test_what_a_killed_export_has_put_is_aborted_after_a_day(lake, killed, open_uploads):
    stored = f"{EXPORTS}/1-2-3/head.arrow"
    killed(PUBLISHES.format(stored=stored, size=SIZE), Rule(Fault.HANG, kinds=[Kind.PUT_PART], times=None))
    warehouse, now = lake.session.warehouse, time.time()
    assert [one.path for one in warehouse.listed(EXPORTS)] == [f"{stored}.upload"]
    delete_markers(warehouse, warehouse.listed(EXPORTS), now - 3600)
    assert len(open_uploads()) == 1
    delete_markers(warehouse, warehouse.listed(EXPORTS), now + 3600)
    assert (list(warehouse.listed(EXPORTS)), open_uploads()) == ([], [])


def test_an_operation_that_was_ended_meanwhile_puts_no_part(lake, proxy, open_uploads):
    table = created(lake)
    op = table.begin_append()
    lake.release(op.id)
    with pytest.raises(LockLost):
        op.write(rows())
    assert proxy.counts()[Kind.PUT_PART] == 0
    assert open_uploads() == []


def test_an_upload_that_was_aborted_is_told(server, lake, proxy, tmp_path):
    if server.server == "moto":
        return  # it has no answer to a part of an upload that it does not know

    class Aborting(Notes):
        def began(self, stored: str, upload: str) -> None:
            lake.session.warehouse.abort_uploads([(stored, upload)] * 2)

    with pytest.raises(StorageUnavailable, match="the upload was aborted, as lakehouse collect does"):
        lake.session.warehouse.objects.put("t/a", large(tmp_path), Aborting(proxy))


def test_a_note_that_could_not_be_crossed_out_goes_with_a_collection(lake):
    table = created(lake)
    table.append(rows(0, 10))
    path = table.segments()[0].path
    stays = text("INSERT INTO upload SELECT number, :path, 'over' FROM operation WHERE id = :operation")
    behind.change(lake.catalog, stays, path=path, operation=path.split("/")[1])
    lake.collect(grace_seconds=0)
    assert noted(lake) == []
    assert table.count() == 10


def test_rows_are_right_while_every_file_is_put_in_parts_and_requests_fail(server, tmp_path):
    with StoreProxy(server.port) as proxy:
        place = server.under(tmp_path.name)
        large = replace(place, options={**place.options, "multipart_bytes": "1"})
        trial = StoreTrial(large, proxy, tmp_path, seed=5)
        trial.run(_FAULTS)
        assert proxy.counts()[Kind.COMPLETE_UPLOAD] > 0
    assert sum(trial.done.values()) > trial.refused


@pytest.mark.parametrize("given", [0, -1, "many", True, None])
def test_a_size_that_is_none_is_told(tmp_path, given):
    with pytest.raises(InvalidArgument, match="multipart_bytes is a number of bytes"):
        open_warehouse("s3://lake/x", {"multipart_bytes": given}, tmp_path)


def test_options_that_parts_do_not_know_leave_it_at_one_request(connect, proxy, tmp_path):
    lake = connect("two", options={"unsigned_payload": "true"})
    lake.session.warehouse.objects.put("t/a", large(tmp_path))
    assert proxy.counts() == {Kind.PUT: 1}
