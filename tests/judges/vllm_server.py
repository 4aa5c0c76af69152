"""A real model behind real HTTP for tests of judges: vLLM's OpenAI-compatible server on loopback.

It serves the model that comes with the project, on one thread and a small cache. It ends the
processes it started and no other.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from arena_lightning.policy.embedded import embedded_model_dir

NAME = "judge"
MAX_TOKENS = 4096
"""Context of the served model: prompt and reply."""
_START_LIMIT_S = 900.0
_ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def serving(log_path):
    """Yield the server's `api_base` once it answers; end it afterwards."""
    port = _free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(embedded_model_dir(_ROOT / "runs" / "models"))]
    command += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-model-len", str(MAX_TOKENS), "--max-num-seqs", "8", "--dtype", "float32"]
    command += ["--enforce-eager", "--disable-log-stats"]
    quiet = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with open(log_path, "wb") as log:
        # Its own session, so that the engine's process can be ended with it.
        server = subprocess.Popen(
            command, env=os.environ | quiet, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait(server, f"http://127.0.0.1:{port}/health", log_path)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            _end(server)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(server, url, log_path):
    end_s = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < end_s:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    tail = Path(log_path).read_text(errors="replace")[-3000:]
    raise AssertionError(f"the server must answer within {_START_LIMIT_S:g} s:\n{tail}")


def _end(server):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=60)
