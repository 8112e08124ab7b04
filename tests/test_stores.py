"""Stores: wherever the examples are, a pass visits each of them once, with what belongs to it."""

import pickle
import threading
from functools import partial, reduce

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.cluster import FakeClient
from helpers.examples import CUTS, FORMS, GIVEN, cut, examples, plain, rtol_of
from helpers.oracle import normalized_rows
from helpers.pairwise import pairwise

from marginsvm.data import memory, messages, passes, stream
from marginsvm.data.block import Centre
from marginsvm.data.cluster import Chunk, RemoteStore
from marginsvm.data.csr import as_block
from marginsvm.data.memory import as_store, chunks
from marginsvm.data.normalized import Division, Normalized
from marginsvm.data.stream import SmallestMargins, StreamStore, ahead
from marginsvm.rows import make_rows

NOT_DIVIDED = [form for form in FORMS if "normalized" not in form]
CODES = np.arange(60) % 3
WORKERS = {"ann": 2, "bob": 1, "cid": 3}


class Reader:
    """The matrices of some blocks, again and again; it counts how often, and how many."""

    def __init__(self, X, sizes):
        self.blocks = [X for _, X in cut(X, sizes)]
        self.passes = self.read = 0

    def __call__(self):
        self.passes += 1
        for block in self.blocks:
            self.read += 1
            yield block


def in_memory(X, sizes, weights=None):
    return as_store(X)


def streamed(X, sizes, weights=None):
    return StreamStore(Reader(X, sizes), CODES, X.shape[1], X.dtype, sp.issparse(X))


def on_a_cluster(X, sizes, weights=None, workers=WORKERS):
    """Chunks on the workers in turn, each with rows of its own."""
    client, names = FakeClient(workers), list(workers)
    held = []
    for i, (part, block) in enumerate(cut(X, sizes)):
        weight = None if weights is None else weights[part]
        rows = make_rows(CODES[part], 3, balanced=True, weights=weight)
        held.append(client.scatter(Chunk(block, rows), names[i % len(names)]))
    return RemoteStore(client, held, sizes, X.shape[1], X.dtype, sp.issparse(X))


PLACES = [in_memory, streamed, on_a_cluster]
MEMORY = {"pieces": ["one piece", "pieces"], "indirect": ["pieces"]}
each_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
each_form = pytest.mark.parametrize("form", NOT_DIVIDED)
in_pieces_too = pytest.mark.parametrize("pieces", MEMORY["pieces"], indirect=True)


@pytest.fixture
def pieces(request, monkeypatch):
    """Blocks that stay in cache: of a row or two, if that is small."""
    if request.param == "pieces":
        monkeypatch.setattr(memory, "_BLOCK_BYTES", 100)


def rows_of(weights=None):
    return make_rows(CODES, 3, balanced=True, weights=weights)


def seen(rows, blocks, *local):
    """Work that tells what it was given: codes, examples, and what belongs to them."""
    return [
        (rows.codes[block], plain(X), *(None if a is None else a[block] for a in local))
        for block, X in blocks
    ]


def total(rows, blocks, V):
    return passes.weighted_sum(rows, blocks, V, np.float64, Centre())


# What all stores promise.


@pairwise(place=PLACES, form=NOT_DIVIDED, sizes=CUTS, **MEMORY)
def test_map_visits_every_example_once_and_in_order(place, form, sizes, pieces, rng):
    X, V = examples(rng, form), rng.standard_normal((60, 3))
    for _ in range(2):  # every pass begins anew
        parts = [part for parts in place(X, sizes).map(seen, rows_of(), V, None) for part in parts]
        codes, found, local, none = zip(*parts, strict=True)
        np.testing.assert_array_equal(np.concatenate(codes), CODES)
        np.testing.assert_array_equal(np.concatenate(found), plain(X))
        np.testing.assert_array_equal(np.concatenate(local), V)
        assert set(none) == {None}


@pairwise(place=PLACES, form=NOT_DIVIDED, sizes=CUTS, **MEMORY)
def test_fold_merges_the_parts(place, form, sizes, pieces, rng):
    X, V = examples(rng, form), rng.standard_normal((60, 3))
    store = place(X, sizes)
    merged = store.fold(total, np.add, rows_of(), V)
    np.testing.assert_allclose(merged, V.T @ plain(X), rtol=1e-12, atol=1e-12)
    parts = reduce(np.add, store.map(total, rows_of(), V))
    np.testing.assert_allclose(parts, merged, rtol=1e-12, atol=1e-12)


@pairwise(place=PLACES, form=NOT_DIVIDED, sizes=CUTS)
def test_take_gives_examples_in_the_order_asked_for(place, form, sizes, rng):
    X = examples(rng, form)
    store = place(X, sizes)
    for index in ([3], [59, 0, 31], [7, 7, 8, 7], rng.permutation(60).tolist()):
        taken = store.take(np.array(index))
        np.testing.assert_array_equal(plain(taken), plain(X)[index])
        assert (taken.csr is not None) == sp.issparse(X)
        assert taken.dtype == X.dtype


@pairwise(place=PLACES, form=NOT_DIVIDED, constant=[0.0, 2.5], **MEMORY)
def test_divided_examples_are_divided_wherever_they_are(place, form, constant, pieces, rng):
    X, V = examples(rng, form), rng.standard_normal((60, 3))
    store = place(X, CUTS["uneven"])
    divided = store.divided(constant)
    A = np.column_stack([plain(X), np.full(60, constant)]) if constant else plain(X)
    expected = normalized_rows(A, fit_intercept=False)
    found = [x for parts in divided.map(seen, rows_of()) for _, x in parts]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=rtol_of(X))
    taken = divided.take(np.array([40, 2, 40]))
    np.testing.assert_allclose(plain(taken), expected[[40, 2, 40]], atol=rtol_of(X))
    image = divided.fold(total, np.add, rows_of(), V)
    np.testing.assert_allclose(image, V.T @ expected, atol=100 * rtol_of(X))
    assert (divided.normalized, store.normalized) == (True, False)
    assert divided.shape == expected.shape
    np.testing.assert_array_equal(plain(store.take(np.arange(60))), plain(X))  # as it was


@each_place
@each_form
def test_stores_say_what_they_hold(place, form, rng):
    X = examples(rng, form)
    store = place(X, CUTS["uneven"])
    assert (store.shape, store.dtype, store.sparse) == (X.shape, X.dtype, sp.issparse(X))
    assert (store.whole is not None) == (place is in_memory)
    assert store.remote == (place is on_a_cluster)
    assert (store.block_callback() is None) == (place is not streamed)
    assert as_store(store) is store


@each_place
def test_an_error_of_the_work_is_raised(place, rng):
    X = examples(rng, "dense")
    with pytest.raises(ZeroDivisionError):
        list(place(X, CUTS["uneven"]).map(divide_by_zero, rows_of()))


def divide_by_zero(rows, blocks):
    return 1 / 0


# Memory.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [100, 1000, 2**22])
def test_chunks_are_consecutive_and_stay_in_cache(form, most, rng, monkeypatch):
    monkeypatch.setattr(memory, "_BLOCK_BYTES", most)
    X = as_block(examples(rng, form))
    lists = chunks(X, start=7)
    blocks = [block for some in lists for block in some]
    assert len(lists) <= memory._MAX_CHUNKS
    assert all(lists)
    assert [block.start for block, _ in blocks] == [7, *(block.stop for block, _ in blocks[:-1])]
    assert blocks[-1][0].stop == 67
    sparse = X.undivided.csr is not None
    for block, part in blocks:
        np.testing.assert_array_equal(plain(part), plain(X)[block.start - 7 : block.stop - 7])
        row = X.shape[1] * X.dtype.itemsize
        assert sparse or len(part) == 1 or len(part) * row <= most
    assert len(blocks) == 1 if sparse or most == 2**22 else len(blocks) > 1
    assert as_store(X).one_pass == (len(blocks) > 1)


def test_no_examples_are_no_blocks():
    assert chunks(as_block(np.empty((0, 3)))) == []


@in_pieces_too
@pytest.mark.parametrize("form", [form for form in GIVEN if "normalized" not in form])
def test_memory_is_never_copied(form, pieces, rng):
    X = examples(rng, form)
    data = X.data if sp.issparse(X) else X

    def shares(rows, blocks):
        matrices = [x.matrix for _, x in blocks]
        return all(np.shares_memory(x.data if sp.issparse(x) else x, data) for x in matrices)

    store = as_store(X)
    assert all(store.map(shares, rows_of()))
    assert store.divided(1.0).whole.undivided.matrix is X
    assert store.whole.matrix is X


# A stream.


@pairwise(form=NOT_DIVIDED, sizes=CUTS, **MEMORY)
def test_a_stream_reads_every_block_once_a_pass(form, sizes, pieces, rng):
    X, V = examples(rng, form), rng.standard_normal((60, 3))
    store = streamed(X, sizes)
    reader = store._read
    for n in (1, 2, 3):
        store.fold(total, np.add, rows_of(), V)
        assert (reader.passes, reader.read) == (n, n * len(sizes))


def test_examples_that_were_asked_for_cost_no_second_pass(rng):
    store = streamed(examples(rng, "dense"), CUTS["uneven"])
    reader = store._read
    store.take(np.array([5, 50]))
    assert reader.passes == 1
    store.take(np.array([50, 5, 5]))
    assert reader.passes == 1
    store.take(np.array([5, 6]))  # one is missing: a pass for it alone
    assert reader.passes == 2
    store.take(np.array([50, 6]))
    assert reader.passes == 2


def test_no_more_examples_are_held_than_there_is_room_for(rng, monkeypatch):
    monkeypatch.setattr(stream, "_KEPT", 1)  # room for 2 of each class, or 4 times as asked
    store = streamed(examples(rng, "dense"), CUTS["uneven"])
    for i in range(0, 60, 2):
        store.take(np.array([i, i + 1]))
        assert len(store._held) <= 8
        assert {i, i + 1} <= set(store._held)
    passes_before = store._read.passes
    store.take(np.array([59, 58, 57]))  # those asked for lately are held
    assert store._read.passes == passes_before


@in_pieces_too
def test_the_worst_of_a_pass_are_at_hand(pieces, rng, monkeypatch):
    monkeypatch.setattr(stream, "_KEPT", 4)
    X, W = examples(rng, "dense"), rng.standard_normal((3, 5))
    store, rows = streamed(X, CUTS["uneven"]), rows_of()
    work = partial(passes.scores, W=W, shift=0.0, centre=Centre(), precise=False)
    F = np.concatenate(list(store.map(partial(work, on_block=store.block_callback()), rows)))
    smallest = rows.margins(F).min(axis=1)
    order = np.argsort(smallest)
    index = np.concatenate([order[CODES[order] == c][:4] for c in range(3)])
    np.testing.assert_array_equal(plain(store.take(index)), X[index])
    assert store._read.passes == 1
    store.block_callback()  # another pass begins: what it has not seen is not at hand
    store.take(np.setdiff1d(np.arange(60), index))
    assert store._read.passes == 2


def test_a_stream_divided_forgets_the_examples_as_they_were(rng):
    X = examples(rng, "dense")
    store = streamed(X, CUTS["uneven"])
    store.take(np.array([4]))
    taken = store.divided(0.0).take(np.array([4]))
    np.testing.assert_allclose(plain(taken), normalized_rows(X[[4]], fit_intercept=False))


def test_the_next_block_is_read_while_one_is_worked_on():
    second_is_read = threading.Event()

    def read():
        yield "first"
        second_is_read.set()
        yield "second"

    blocks = ahead(read())
    assert next(blocks) == "first"
    assert second_is_read.wait(timeout=60)  # nobody has asked for it yet
    assert list(blocks) == ["second"]


def test_errors_of_reading_arrive_in_their_turn():
    def read():
        yield 1
        yield 2
        raise OSError("gone")

    blocks = ahead(read())
    assert [next(blocks), next(blocks)] == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(blocks)


# The examples of smallest margin in a pass.


def smallest_by_sorting(codes, margins, most):
    """Indices of the smallest of each class; of equal ones, the first."""
    found = set()
    for c in np.unique(codes):
        mine = np.flatnonzero(codes == c)
        found |= set(mine[np.lexsort((mine, margins[mine]))[:most]].tolist())
    return found


@pytest.mark.parametrize("most", [1, 3, 20, 1000])
@pytest.mark.parametrize("many", [False, True], ids=["two classes", "many"])
def test_the_worst_do_not_depend_on_the_order_of_blocks(most, many, rng):
    X, codes = rng.standard_normal((500, 2)), np.arange(500) % 3
    margins = np.round(rng.standard_normal((500, 3) if many else 500), 1)  # with ties
    blocks = [slice(i, i + 50) for i in range(0, 500, 50)]
    expected = smallest_by_sorting(codes, margins.min(axis=1) if many else margins, most)
    for _ in range(5):
        smallest = SmallestMargins(codes, most)
        for k in rng.permutation(len(blocks)):
            smallest(blocks[k], as_block(X[blocks[k]]), margins[blocks[k]])
        found = smallest.examples()
        assert set(found) == expected
        assert all(np.array_equal(x.dense[0], X[i]) for i, x in found.items())


@pytest.mark.parametrize("form", GIVEN)
def test_the_worst_outlive_their_block(form, rng):
    X = examples(rng, form)
    expected, margins = plain(X).copy(), rng.standard_normal(60)
    smallest = SmallestMargins(CODES, 5)
    for block, part in cut(X, CUTS["uneven"]):
        smallest(block, part, margins[block])
    values = as_block(X).undivided.matrix
    (values.data if sp.issparse(values) else values)[:] = np.nan
    for i, x in smallest.examples().items():
        np.testing.assert_allclose(plain(x), expected[[i]], rtol=rtol_of(X))
        given = x.undivided  # it keeps no more memory than its own
        assert given.csr is not None or given.dense.base is None


def test_several_threads_show_their_blocks(rng):
    X, codes, margins = rng.standard_normal((4000, 2)), np.arange(4000) % 2, rng.random(4000)
    smallest = SmallestMargins(codes, 30)
    X, blocks = as_block(X), [slice(i, i + 20) for i in range(0, 4000, 20)]
    threads = [
        threading.Thread(target=lambda k=k: [smallest(b, X[b], margins[b]) for b in blocks[k::4]])
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(smallest.examples()) == smallest_by_sorting(codes, margins, 30)


# A cluster.


def test_every_worker_folds_its_own_chunks_on_all_its_threads(rng):
    store = on_a_cluster(examples(rng, "dense"), [5] * 12)  # 4 on each worker
    AT_WORK.clear()
    threads = {f"{name}_{i}" for name, n in WORKERS.items() for i in range(n)}
    assert store.fold(thread_at_work, set.union, rows_of()) == threads
    for i, (name, n) in enumerate(WORKERS.items()):
        mine = list(store.map(thread_at_work, rows_of()))[i::3]
        assert set.union(*mine) <= {f"{name}_{i}" for i in range(n)}
    asked = [("client", name) for name in WORKERS]
    assert store._client.messages == 4 * asked  # one message to each, whatever the chunks


AT_WORK, SOMEBODY_CAME = set(), threading.Condition()


def thread_at_work(rows, blocks):
    """The name of a thread, that of its worker and a number, once all of that worker's came."""
    mine = threading.current_thread().name
    worker, _, _ = mine.partition("_")
    with SOMEBODY_CAME:
        AT_WORK.add(mine)
        SOMEBODY_CAME.notify_all()
        SOMEBODY_CAME.wait_for(
            lambda: sum(name.startswith(worker) for name in AT_WORK) == WORKERS[worker], timeout=60
        )
    return {mine}


@pytest.mark.parametrize("unmerged", [0, messages._UNMERGED_BYTES])
def test_many_results_are_merged_on_the_cluster(rng, monkeypatch, unmerged):
    monkeypatch.setattr(messages, "_BRANCHES", 2)
    monkeypatch.setattr(messages, "_UNMERGED_BYTES", unmerged)
    X, V = examples(rng, "dense"), rng.standard_normal((60, 3))
    store, answers = on_a_cluster(X, [5] * 12), []
    sync = store._client.sync
    monkeypatch.setattr(
        store._client, "sync", lambda *args: answers.append(sync(*args)) or answers[-1]
    )
    image = store.fold(total, np.add, rows_of(), V)
    np.testing.assert_allclose(image, V.T @ X, rtol=1e-12, atol=1e-12)
    asked = {("client", "ann"), ("ann", "bob"), ("client", "cid")}
    assert set(store._client.messages) == asked
    assert len(store._client.messages) == 3
    n_results = [len(pickle.loads(answer)) for answer in answers[0]]
    assert n_results == ([1, 1] if unmerged == 0 else [8, 4])


def test_sums_are_the_same_wherever_the_chunks_are(rng, monkeypatch):
    X, V = examples(rng, "dense"), rng.standard_normal((60, 3))
    monkeypatch.setattr(messages, "_BRANCHES", 2)
    images = []
    for threads in ({"ann": 1}, {"ann": 3, "bob": 1}, {f"worker {i}": 1 for i in range(5)}):
        store = on_a_cluster(X, [5, 1, 13, 20, 3, 18], workers=threads)
        images.append(store.fold(total, np.add, rows_of(), V))
    np.testing.assert_array_equal(images, [images[0]] * 3)


def test_only_the_holders_of_examples_are_asked_for_them(rng):
    store = on_a_cluster(examples(rng, "dense"), [20, 20, 20])
    store.take(np.array([45, 1, 41]))
    assert store._client.messages == [("client", "ann"), ("client", "cid")]


def test_chunks_with_several_holders_are_shared_out(rng):
    store = on_a_cluster(examples(rng, "dense"), [5] * 12)
    workers = store._client.workers
    for worker in workers.values():
        worker.data.update(workers["bob"].data)  # bob's four chunks are everywhere
    store.take(np.array([5, 20, 35, 50]))  # one of each of them
    assert [name for _, name in store._client.messages] == ["ann", "bob", "cid"]


def lose(worker):
    worker.lost = True


def forget(worker):
    worker.data.clear()


def move(worker):
    worker.client.workers["cid"].data.update(worker.data)
    worker.data.clear()


@pairwise(
    when=["before", "while"],
    fault=[lose, forget, move],
    name=list(WORKERS),
    branches={"passed on": 1, "asked": 8},
)
def test_what_a_worker_does_not_answer_is_asked_again(
    when, fault, name, branches, rng, monkeypatch
):
    monkeypatch.setattr(messages, "_BRANCHES", branches)
    X, V = examples(rng, "dense"), rng.standard_normal((60, 3))
    expected = on_a_cluster(X, [5] * 12).fold(total, np.add, rows_of(), V)
    store = on_a_cluster(X, [5] * 12)
    worker = store._client.workers[name]
    if when == "before":
        fault(worker)
    else:  # after the scheduler has said who holds what
        who_has, faults = store._client.who_has, [fault]

        def as_it_was(some):
            found = who_has(some)
            if faults:
                faults.pop()(worker)
            return found

        monkeypatch.setattr(store._client, "who_has", as_it_was)
    np.testing.assert_array_equal(store.fold(total, np.add, rows_of(), V), expected)
    np.testing.assert_array_equal(plain(store.take(np.arange(60))), X)
    codes = [codes for part in store.map(seen, rows_of()) for codes, _ in part]
    np.testing.assert_array_equal(np.concatenate(codes), CODES)


def test_workers_that_are_lost_again_and_again(rng, monkeypatch):
    store = on_a_cluster(examples(rng, "dense"), [20, 20, 20])
    monkeypatch.setattr(store._client, "submit", lambda *args, **kwargs: None)
    monkeypatch.setattr(store._client, "gather", lambda some: None)
    store._client.workers["bob"].lost = True
    with pytest.raises(RuntimeError, match="no answer for 1 of 3 chunks in 8 attempts") as info:
        list(store.map(seen, rows_of()))
    assert "bob is gone" in str(info.value.__cause__)


@pytest.mark.parametrize("branches", [1, 8], ids=["passed on", "asked"])
def test_an_error_of_the_work_is_not_taken_for_a_loss(branches, rng, monkeypatch):
    monkeypatch.setattr(messages, "_BRANCHES", branches)
    store = on_a_cluster(examples(rng, "dense"), [20, 20, 20])
    with pytest.raises(ZeroDivisionError):
        store.fold(divide_by_zero, np.add, rows_of())
    assert len(store._client.messages) == 3


def unaligned(X):
    """The same numbers at odd addresses, as in a message."""
    if isinstance(X, Normalized):
        return Normalized(unaligned(X.undivided.matrix), X.scale, X.constant)
    if sp.issparse(X):
        return X
    memory = np.empty(X.nbytes + 1, np.uint8)
    copy = np.ndarray(X.shape, X.dtype, buffer=memory, offset=1 - memory.ctypes.data % 2)
    copy[:] = X
    return copy


@in_pieces_too
@pytest.mark.parametrize("form", GIVEN)
def test_examples_at_odd_addresses(form, pieces, rng):
    X, V = examples(rng, form), rng.standard_normal((60, 3))
    odd = unaligned(X)
    sparse = as_block(X).undivided.csr is not None
    assert sparse or not as_block(odd).undivided.dense.flags.aligned
    rows = rows_of()
    np.testing.assert_array_equal(
        total(rows, Chunk(odd, rows).blocks(), V), total(rows, Chunk(X, rows).blocks(), V)
    )
    for _, x in Chunk(odd, rows).blocks():
        assert sparse or x.undivided.dense.flags.aligned


def test_examples_at_even_addresses_are_not_copied(rng):
    X = examples(rng, "dense")
    assert all(np.shares_memory(x.dense, X) for _, x in Chunk(X, rows_of()).blocks())


def test_chunks_have_the_weights_of_their_examples(rng):
    X, weights = examples(rng, "dense"), rng.random(60)
    store = on_a_cluster(X, CUTS["uneven"], weights)
    found = store.map(weights_of_rows, rows_of(weights))
    np.testing.assert_array_equal(np.concatenate(list(found)), weights)


def weights_of_rows(rows, blocks):
    return rows.weights


# The division undone.


def test_a_division_is_undone_in_the_predictor(rng):
    """``w.x + b`` of the examples as given has the signs of the divided ones' scores."""
    X, w = rng.standard_normal((20, 4)), rng.standard_normal((1, 5))
    divided = Normalized(X, 1.0 / np.hypot(np.linalg.norm(X, axis=1), 2.5), 2.5)
    coef, intercept = Division(2.5).undone(w, np.zeros(1))
    scores = divided @ w[0]
    np.testing.assert_allclose((X @ coef[0] + intercept) * divided.scale, scores, rtol=1e-12)
    coef, intercept = Division(0.0).undone(w, np.array([0.5]))  # nothing has joined
    assert (coef is w, intercept) == (True, 0.5)
    scale = rng.random(20)  # of a kernel: coefficients on the examples
    alpha = rng.standard_normal((1, 20))
    coef, intercept = Division(2.0, scale).undone(alpha, np.zeros(1))
    np.testing.assert_allclose(coef, alpha * scale)
    np.testing.assert_allclose(intercept, 4.0 * (alpha * scale).sum())
