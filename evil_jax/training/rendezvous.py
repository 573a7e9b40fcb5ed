"""The processes of a run find each other before JAX starts: who does not come, or comes wrongly, is told by name.

The first process listens where JAX's coordinator will listen afterwards. The others say who they are, one JSON line
each; it answers all of them, when all are there or at the first contradiction.
"""

import contextlib
import json
import socket
import time
from typing import Any

_HELLO = 65536  # bytes that a line may have at most
_PROBE = 30  # seconds of silence after which the kernel asks whether the other machine is there


def meet(coordinator: str, number: int, this: int, command: dict[str, Any], timeout: float) -> dict[int, socket.socket]:
    """Returns when all processes are there.

    Args:
      coordinator: 'host:port' of the first process.
      number: of processes.
      this: number of this one, from 0.
      command: JSON that has to be the same in all, {what: value}.
      timeout: seconds.

    Returns:
      {number of another process: connection to it}: all others in the first process, that one in the others. Nothing is
      ever sent: what there is to read is the end of the other process.

    Raises:
      ValueError: the coordinator does not answer, processes are missing, or two of them contradict each other.
    """
    if number == 1:
        return {}
    host, _, port = coordinator.rpartition(':')
    host, end = host.strip('[]'), time.monotonic() + timeout  # [::1]:1234
    hello = {'evil_jax': 1, 'process': this, 'processes': number, 'command': command}
    if this == 0:
        lines = _receive(int(port), hello, end, timeout)
    else:
        lines = {0: _call(host, int(port), hello, end, timeout)}
    for line in lines.values():
        _keep(line)
    return lines


def _keep(line):
    """A connection that is never used must not be forgotten by a firewall on the way."""
    line.settimeout(None)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, 'TCP_KEEPIDLE'):  # Linux
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE)


def _call(host, port, hello, end, timeout):
    """One of the others: says hello and waits for the answer. Returns the connection."""
    why = 'no answer'
    while (left := end - time.monotonic()) > 0:
        with contextlib.ExitStack() as stack:
            try:
                # Whoever is alone here waits a little longer than the first process, which knows who is missing.
                line = stack.enter_context(socket.create_connection((host, port), timeout=min(left, 10)))
                line.sendall(json.dumps(hello).encode() + b'\n')
                line.settimeout(left + 10)
                answer = _read(line)
            except OSError as error:
                why, answer = str(error), None
            if answer == '':
                stack.pop_all()  # stays open
                return line
            if isinstance(answer, str):
                raise ValueError(answer)
        time.sleep(min(0.2, max(end - time.monotonic(), 0)))  # it has not started yet, or something else answers there
    raise ValueError(f'process {hello["process"]} found no coordinator at {host}:{port} in {timeout:g} s: {why}')


def _receive(port, hello, end, timeout):
    """The first process: waits for all the others, then answers them. Returns the connections."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    try:
        server = socket.create_server(
            ('', port), family=family, backlog=hello['processes'], dualstack_ipv6=family == socket.AF_INET6
        )
    except OSError as error:
        raise ValueError(f'process 0 cannot listen at port {port}: {error}') from error
    lines: dict[int, socket.socket] = {}
    with server, contextlib.ExitStack() as stack:
        fault = ''
        while not fault and len(lines) < hello['processes'] - 1:
            server.settimeout(max(end - time.monotonic(), 0.001))
            try:
                line, address = server.accept()
            except TimeoutError:
                missing = sorted(set(range(1, hello['processes'])) - lines.keys())
                fault = (
                    f'after {timeout:g} s {len(missing)} of {hello["processes"]} processes had not come: '
                    + ', '.join(map(str, missing))
                )
                break
            stack.enter_context(line)
            other = None
            with contextlib.suppress(OSError):  # a port scanner may hang up
                line.settimeout(5)
                other = _read(line)
            if not isinstance(other, dict) or other.keys() != hello.keys():
                line.close()
                continue
            fault = _contradiction(hello, other, lines, address[0])
            lines[-1 if fault else other['process']] = line
        for line in lines.values():
            with contextlib.suppress(OSError):
                line.sendall(json.dumps(fault).encode() + b'\n')
        if fault:
            raise ValueError(fault)
        stack.pop_all()  # they stay open
    return lines


def _contradiction(mine, other, lines, address) -> str:
    """What is wrong with another process; '' if nothing is."""
    who = f'process {other["process"]} ({address})'
    if other['processes'] != mine['processes']:
        return f'{who} has --num_processes={other["processes"]}, process 0 has {mine["processes"]}'
    if other['process'] in (0, *lines):
        return f'there are two processes with --process_id={other["process"]}, one of them at {address}'
    for what, value in mine['command'].items():
        if value != other['command'].get(what):
            return f'{who} has another {what} than process 0: {other["command"].get(what)!r} and {value!r}'
    return ''


def _read(line: socket.socket) -> Any:
    """One line of JSON; None if it is something else. Raises OSError (also TimeoutError)."""
    data = b''
    while not data.endswith(b'\n') and len(data) <= _HELLO:
        part = line.recv(_HELLO)
        if not part:
            break
        data += part
    try:
        return json.loads(data)
    except ValueError:
        return None
