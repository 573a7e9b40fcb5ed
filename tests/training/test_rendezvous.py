import json
import select
import socket
import threading
import time

import pytest

from evil_jax.training import rendezvous


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


def gather(port, *calls, timeout=20, before=None, lines=None):
    """What each of several processes, threads here, ends with: None or its error. A call: (number, this, command).

    Their connections are put into `lines`, by the number of the process, or closed.
    """
    ends = [None] * len(calls)

    def run(place, number, this, command):
        try:
            found = rendezvous.meet(f'localhost:{port}', number, this, command, timeout)
            if lines is not None:
                lines[this] = found
                return
            for line in found.values():
                line.close()
        except ValueError as error:
            ends[place] = str(error)

    threads = [threading.Thread(target=run, args=(i, *call), daemon=True) for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
        if before:
            before()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return ends


def test_all_come_in_any_order(port):
    command = {'--mode': ['train'], 'lr': 1e-3}
    late = lambda: time.sleep(0.3)
    assert gather(port, *((4, i, command) for i in (2, 0, 3, 1)), before=late) == [None] * 4


def test_the_port_is_free_afterwards(port):
    for _ in range(2):
        assert gather(port, (2, 0, {}), (2, 1, {})) == [None] * 2


def test_who_is_gone_is_missed_by_those_it_met(port):
    lines = {}
    assert gather(port, *((3, i, {}) for i in range(3)), lines=lines) == [None] * 3
    assert [sorted(lines[i]) for i in range(3)] == [[1, 2], [0], [0]]
    with socket.create_server(('localhost', port)):  # JAX listens there meanwhile
        ends = lambda: select.select(list(lines[0].values()), [], [], 0)[0]
        assert not ends()
        lines[2][0].close()
        assert lines[0][2].recv(1) == b'' and ends() == [lines[0][2]]
        for line in lines[0].values():
            line.close()
        assert lines[1][0].recv(1) == b''
    lines[1][0].close()


def test_one_alone_waits_for_nobody(port):
    start = time.monotonic()
    assert rendezvous.meet(f'localhost:{port}', 1, 0, {}, timeout=60) == {}
    assert time.monotonic() - start < 30


def test_who_is_missing_is_named_to_all(port):
    ends = gather(port, (4, 0, {}), (4, 2, {}), timeout=1)
    assert ends == ['after 1 s 2 of 4 processes had not come: 1, 3'] * 2


def test_nobody_listens(port):
    (end,) = gather(port, (2, 1, {}), timeout=1)
    assert end.startswith(f'process 1 found no coordinator at localhost:{port} in 1 s: ')


@pytest.mark.parametrize(
    ('second', 'message'),
    [
        ((3, 1, {'seed': 0}), '--num_processes=3, process 0 has 2'),
        ((2, 1, {'seed': 1}), 'has another seed than process 0: 1 and 0'),
        ((2, 1, {}), 'has another seed than process 0: None and 0'),
    ],
)
def test_contradictions_are_told_to_all(port, second, message):
    ends = gather(port, (2, 0, {'seed': 0}), second)
    assert ends[0] == ends[1] and message in ends[0] and ends[0].startswith('process 1 (')


def test_the_same_number_twice(port):
    ends = gather(port, (3, 0, {}), (3, 2, {}), (3, 2, {}))
    assert len(set(ends)) == 1 and ends[0].startswith('there are two processes with --process_id=2')


def test_a_port_in_use(port):
    with socket.create_server(('', port)):
        with pytest.raises(ValueError, match=f'process 0 cannot listen at port {port}: .*in use'):
            rendezvous.meet(f'localhost:{port}', 2, 0, {}, 1)


@pytest.mark.parametrize('words', [b'', b'GET / HTTP/1.1\r\n\r\n', b'{}\n', b'[1]\n', b'\xff\xfe\n', b'x' * 100_000])
def test_strangers_are_ignored(port, words):
    def knock():
        for _ in range(100):
            try:
                with socket.create_connection(('localhost', port)) as line:
                    line.sendall(words)
                return
            except OSError:  # it does not listen yet, or has hung up
                time.sleep(0.02)

    stranger = threading.Thread(target=knock)
    stranger.start()
    first = threading.Thread(target=lambda: ends.extend(gather(port, (2, 0, {}))))
    ends = []
    first.start()
    stranger.join()
    assert gather(port, (2, 1, {})) == [None]
    first.join()
    assert ends == [None]


def test_something_else_answers_at_the_port(port):
    def serve(server):
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                line.recv(1000)
                line.sendall(json.dumps({'hello': 1}).encode() + b'\n')

    with socket.create_server(('', port)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        (end,) = gather(port, (2, 1, {}), timeout=1)
    assert end.startswith('process 1 found no coordinator at')
