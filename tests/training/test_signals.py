import os
import signal

import pytest

from evil_jax.training import signals


@pytest.mark.parametrize('signum, code', [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_is_noted_and_the_handlers_come_back(signum, code):
    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    with signals.Stop() as stop:
        assert not stop.agreed()
        os.kill(os.getpid(), signum)
        assert stop.agreed()
        assert stop.exit_code == code
        assert signal.getsignal(signum) == before[signum]  # a second one ends the process
    assert {s: signal.getsignal(s) for s in before} == before
